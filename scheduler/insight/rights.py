"""What each user may see, by their rights to the API's resources.

    one pod                       get pods/NAME in its namespace
    pods of one namespace         list pods in the namespace
    pods of all namespaces        list pods in all namespaces
    names of nodes                get nodes; without it, counts
    victims of preemption         list pods in all namespaces
    a forecast (what-if)          list pods in all namespaces
    a forecast of new pods alone  create pods in each of their namespaces; of a waiting group alone
                                  list pods in its namespace
    nodes that it changes         get nodes
    policies                      list schedulingprofiles.scheduling.berth.dev

The rights of forecasts are in :mod:`scheduler.insight.forecast_rights`. No right of Berth's own is
needed, and none opens more than these do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.insight.refused import RefusedError

if TYPE_CHECKING:
    from scheduler.serving.server import Visitor

PROFILES_GROUP = "scheduling.berth.dev"


async def require_pod(visitor: Visitor, namespace: str, name: str) -> None:
    """Return if a user may get a pod.

    Raises
    ------
    RefusedError
        They may not, whether or not the pod exists.
    ApiError
        The API server does not say.
    """
    if not await visitor.may("get", "pods", namespace=namespace, name=name):
        raise forbidden(visitor, f"get pods {name!r} in the namespace {namespace!r}")


async def require_pods(visitor: Visitor, namespace: str) -> None:
    """Return if a user may list the pods of a namespace; of all, if it is empty.

    Raises
    ------
    RefusedError
        They may not.
    ApiError
        The API server does not say.
    """
    if await visitor.may("list", "pods", namespace=namespace):
        return
    if namespace:
        raise forbidden(visitor, f"list pods in the namespace {namespace!r}")
    hint = "; name a namespace that you may list, by ?namespace=NAME"
    raise forbidden(visitor, f"list pods in all namespaces{hint}")


async def require_policies(visitor: Visitor) -> None:
    """Return if a user may read policies.

    Raises
    ------
    RefusedError
        They may not.
    ApiError
        The API server does not say.
    """
    if not await visitor.may("list", "schedulingprofiles", group=PROFILES_GROUP):
        raise forbidden(visitor, f"list schedulingprofiles.{PROFILES_GROUP}")


async def sees_nodes(visitor: Visitor) -> bool:
    """Return whether a user may see the names of nodes.

    Raises
    ------
    ApiError
        The API server does not say.
    """
    return await visitor.may("get", "nodes")


async def sees_all_pods(visitor: Visitor) -> bool:
    """Return whether a user may see the names of pods of all namespaces.

    Raises
    ------
    ApiError
        The API server does not say.
    """
    return await visitor.may("list", "pods")


def forbidden(visitor: Visitor, what: str) -> RefusedError:
    """Return the refusal of a user who may not do something."""
    return RefusedError(
        403, "Forbidden", f'forbidden: User "{visitor.user.username}" cannot {what}'
    )
