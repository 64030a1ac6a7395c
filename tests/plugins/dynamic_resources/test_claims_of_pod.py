from __future__ import annotations

import pytest

from plugins.dynamic_resources.claims_of_pod import ClaimsNotReadyError, claims_of_pod
from tests.builders import pod
from tests.device_builders import resource_claim

NAMED = pod("web").resource_claim("gpu", "shared")
MADE = pod("web").resource_claim("gpu", template="t")
OTHER = pod("web").uid("another pod of that name").build()


@pytest.mark.parametrize(
    ("waiting", "claim", "reason"),
    [
        pytest.param(
            MADE, None, 'pod "default/web": ResourceClaim not created yet', id="no status entry"
        ),
        pytest.param(
            pod("web").resource_claim("gpu"),
            None,
            'pod "default/web", spec.resourceClaim "gpu": none of the supported fields are set',
            id="no reference",
        ),
        pytest.param(
            NAMED, None, 'could not find ResourceClaim "default/shared"', id="named and not there"
        ),
        pytest.param(
            NAMED,
            resource_claim("shared", namespace="other"),
            'could not find ResourceClaim "default/shared"',
            id="in another namespace",
        ),
        pytest.param(
            NAMED,
            resource_claim("shared").terminating(),
            'resourceclaim "shared" is being deleted',
            id="terminating",
        ),
        pytest.param(
            MADE.generated_claim("gpu", "web-gpu"),
            resource_claim("web-gpu").owned_by(OTHER),
            "ResourceClaim default/web-gpu was not created for Pod default/web (Pod is not owner)",
            id="of a former pod",
        ),
        pytest.param(
            MADE.generated_claim("gpu", "web-gpu"),
            resource_claim("web-gpu"),
            "ResourceClaim default/web-gpu was not created for Pod default/web (Pod is not owner)",
            id="of nobody",
        ),
    ],
)
def test_a_claim_that_cannot_be_used_is_the_reason(waiting, claim, reason) -> None:
    known = {} if claim is None else {_key(claim.build()): claim.build()}
    with pytest.raises(ClaimsNotReadyError) as caught:
        claims_of_pod(waiting.build(), lambda *key: known.get(key))
    assert str(caught.value) == reason


def test_claims_come_in_the_order_of_the_spec() -> None:
    waiting = (
        (MADE.resource_claim("a", "shared").resource_claim("none", template="t"))
        .generated_claim("none", None)
        .generated_claim("gpu", "web-gpu")
    )
    claims = [
        resource_claim("shared").build(),
        resource_claim("web-gpu").owned_by(waiting.build()).build(),
    ]
    known = {_key(claim): claim for claim in claims}
    found = claims_of_pod(waiting.build(), lambda *key: known.get(key))
    assert [claim.metadata.name for claim in found] == ["web-gpu", "shared"]


def test_the_first_claim_that_cannot_be_used_decides() -> None:
    waiting = NAMED.resource_claim("b", template="t").build()
    with pytest.raises(ClaimsNotReadyError, match="could not find"):
        claims_of_pod(waiting, lambda *_: None)


def _key(claim) -> tuple[str, str]:
    return claim.metadata.namespace, claim.metadata.name
