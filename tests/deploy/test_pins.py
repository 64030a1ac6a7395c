"""What the image is built with is pinned, and what the project says that it runs on was run."""

from __future__ import annotations

import re
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from tests.deploy.chart import ROOT
from tests.deploy.pins import BASE, BUILD_TOOLS, DOCKERFILE, build_tools, digest_of, pinned

if TYPE_CHECKING:
    from collections.abc import Iterator

DIGEST = f"sha256:{'a' * 64}"


class Registry(ThreadingHTTPServer):
    """A registry that wants a token, and the server that gives them out."""

    digest = DIGEST

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answering(BaseHTTPRequestHandler):
    server: Registry

    def do_HEAD(self) -> None:
        if self.headers.get("Authorization") != "Bearer library/python":
            self.send_response(401)
            scope = 'service="here",scope="library/python"'
            self.send_header("WWW-Authenticate", f'Bearer realm="{self.server.url}/token",{scope}')
        elif "index" in self.headers["Accept"] and self.path == "/v2/library/python/manifests/slim":
            self.send_response(200)
            self.send_header("Docker-Content-Digest", self.server.digest)
        else:
            self.send_response(404)
        self.end_headers()

    def do_GET(self) -> None:
        assert self.path == "/token?service=here&scope=library%2Fpython"
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"token": "library/python"}')

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    with Registry(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_the_digest_of_a_tag_is_asked_for_with_a_token(registry: Registry) -> None:
    assert digest_of(registry.url, "library/python", "slim") == DIGEST


def test_an_answer_without_a_digest_is_none(registry: Registry) -> None:
    registry.digest = "sha256:short"
    with pytest.raises(ValueError, match="has no digest for library/python:slim"):
        digest_of(registry.url, "library/python", "slim")


def test_only_the_digest_is_replaced() -> None:
    text = DOCKERFILE.read_text()
    again = pinned(text, DIGEST)
    (old,), (new,) = BASE.finditer(text), BASE.finditer(again)
    assert (new["host"], new["name"], new["tag"]) == (old["host"], old["name"], old["tag"])
    assert again == text.replace(old["digest"], DIGEST)


def test_the_preset_base_is_pinned() -> None:
    assert len(list(BASE.finditer(DOCKERFILE.read_text()))) == 1


def test_build_tools_are_those_of_the_lock_file_with_their_hashes() -> None:
    assert BUILD_TOOLS.read_text() == build_tools()
    for tool in re.split(r"\n(?=\w)", build_tools()):
        assert "--hash=sha256:" in tool


def test_the_build_fetches_nothing_but_what_is_locked() -> None:
    text = DOCKERFILE.read_text()
    fetching = re.findall(r"(?:pip install|uv (?:sync|pip install|tool|run))(?:\\\n|[^&\n])*", text)
    assert len(fetching) == 3
    tools, dependencies, own = fetching
    assert "--require-hashes" in tools
    assert "--frozen" in dependencies
    assert "--no-deps" in own
    assert "/wheel/*.whl" in own


def test_pythons_that_are_named_are_those_that_tests_run_on() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    prefix = "Programming Language :: Python :: 3."
    named = {int(each.removeprefix(prefix)) for each in project["classifiers"] if prefix in each}
    # Debian 12 and 13, tests/e2e/images.py; 11 is what the rest of CI runs on, too.
    assert named == {11, 13}
    assert sys.version_info[1] in named
