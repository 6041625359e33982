"""Asks the API server by dry runs whether a pod could be deleted and evicted now."""

from typing import Any, NamedTuple

import msgspec

from altershield.views import permission
from altershield.views.asking import RequestError
from altershield.views.why.refusal import Answer, answer
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, ConflictError, ForbiddenError, NotFoundError, UnauthorizedError
from kube_base.meta import ObjectMeta
from kube_base.resources import PODS

_DRY = {"dryRun": ["All"]}


class Answers(NamedTuple):
    deletion: Answer
    eviction: Answer


class _Pod(msgspec.Struct):
    metadata: ObjectMeta


async def ask_about(client: Client, namespace: str, name: str) -> Answers:
    """RequestError: there is no such pod, it is being deleted already, or nobody may read it.

    Both the request and its options say that it is a dry run: an API server that ignored one of them would delete the
    pod.
    """
    try:
        metadata = (await client.get(PODS, name, namespace, as_=_Pod)).metadata
    except NotFoundError:
        raise _missing(namespace, name) from None
    except ForbiddenError as error:
        attempt = f"read pod {name} {permission.place(namespace)}"
        raise RequestError(permission.refused(attempt, error, permission.role("view", namespace))) from error
    if metadata.deletion_timestamp is not None:
        raise RequestError(
            f'pod {name} in namespace "{namespace}" is being deleted since {metadata.deletion_timestamp}: '
            "nobody is asked about it any more"
        )
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": metadata.uid}, **_DRY}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": name, "namespace": namespace},
        "deleteOptions": {"preconditions": {"uid": metadata.uid}, **_DRY},
    }
    return Answers(
        await _asked(client, namespace, name, "DELETE", "", options),
        await _asked(client, namespace, name, "POST", "eviction", eviction),
    )


async def _asked(client: Client, namespace: str, name: str, method: str, subresource: str, body: Any) -> Answer:
    warnings: list[str] = []
    client.on_warning(warnings.append)
    try:
        await client.request(method, PODS.path(namespace, name, subresource), query={"dryRun": "All"}, body=body)
    except UnauthorizedError:
        raise
    except (NotFoundError, ConflictError):
        raise _missing(namespace, name) from None
    except ApiError as error:
        return answer(error, warnings)
    return answer(None, warnings)


def _missing(namespace: str, name: str) -> RequestError:
    return RequestError(
        f'there is no pod {name} in namespace "{namespace}"; check the name, or set another namespace with -n'
    )
