"""`POST serviceaccounts/{name}/token`: issues a token for a ServiceAccount, for example for `kubectl create token`.

The order of the checks and the texts follow kube-apiserver's `pkg/registry/core/serviceaccount/storage/token.go`.
"""

import time

from kube_base.times import rfc3339
from kube_sandbox.apiserver.attributes import Object, Reader
from kube_sandbox.apiserver.auth.tokens import AUDIENCES, ServiceAccountTokens
from kube_sandbox.apiserver.errors import StatusError, invalid
from kube_sandbox.apiserver.storage.store import conflict, not_found

_GROUP = "authentication.k8s.io"
_DEFAULT_SECONDS = 3600
_MIN_SECONDS = 600
_MAX_SECONDS = 1 << 32


def create(tokens: ServiceAccountTokens, reader: Reader, namespace: str, name: str, request: Object) -> Object:
    """The response to a TokenRequest (an object with `spec`). Raises StatusError 400, 404, 409 or 422."""
    metadata = request.get("metadata") or {}
    spec = {"audiences": [], "expirationSeconds": _DEFAULT_SECONDS, "boundObjectRef": None} | {
        key: value for key, value in (request.get("spec") or {}).items() if value is not None
    }
    for key, value in (("name", name), ("namespace", namespace)):
        if metadata.get(key) not in (None, "", value):
            raise _invalid(name, f"metadata.{key}", metadata[key], f"must match the service account {key} if specified")
    account = _stored(reader, "serviceaccounts", name, namespace)
    uid = account["metadata"]["uid"]
    if metadata.get("uid") not in (None, "", uid):
        raise conflict(
            (_GROUP, "TokenRequest"),
            name,
            f"the UID in the token request ({metadata['uid']}) does not match the UID of the service account ({uid})",
        )
    seconds = spec["expirationSeconds"]
    if seconds < _MIN_SECONDS:
        why = "may not specify a duration less than 10 minutes"
        raise _invalid("", "spec.expirationSeconds", seconds, why)
    if seconds > _MAX_SECONDS:
        why = "may not specify a duration larger than 2^32 seconds"
        raise _invalid("", "spec.expirationSeconds", seconds, why)
    spec["audiences"] = spec["audiences"] or list(AUDIENCES)
    bound = _bound(reader, spec["boundObjectRef"], name, namespace) if spec["boundObjectRef"] else {}
    now = time.time()
    token = tokens.issue(account, audiences=spec["audiences"], seconds=seconds, bound=bound)
    return {
        "kind": "TokenRequest",
        "apiVersion": f"{_GROUP}/v1",
        "metadata": {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": rfc3339(now)},
        "spec": spec,
        "status": {"token": token, "expirationTimestamp": rfc3339(now + seconds)},
    }


def _bound(reader: Reader, reference: Object, account: str, namespace: str) -> dict[str, Object]:
    """The object that a token is bound to, with its kind in lower case as the key; for a pod also its node. The token
    becomes invalid when the object is deleted."""
    api_version, kind = str(reference.get("apiVersion", "")), str(reference.get("kind", ""))
    name = str(reference.get("name", ""))
    if "/" in api_version or kind not in ("Pod", "Node", "Secret"):
        group, _, version = api_version.rpartition("/")
        raise StatusError(400, f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    bound: dict[str, Object] = {}
    if kind == "Pod":
        pod = _stored(reader, "pods", name, namespace)
        if pod["spec"].get("serviceAccountName") != account:
            raise StatusError(
                400,
                f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.',
            )
        bound["pod"] = pod
        if node := pod["spec"].get("nodeName"):
            bound["node"] = reader.get("", "nodes", node) or {"metadata": {"name": node}}
    else:
        plural = f"{kind.lower()}s"
        bound[kind.lower()] = _stored(reader, plural, name, "" if kind == "Node" else namespace)
    if reference.get("uid") not in (None, "", bound[kind.lower()]["metadata"]["uid"]):
        raise conflict(
            ("", kind),
            name,
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        )
    return bound


def _stored(reader: Reader, plural: str, name: str, namespace: str) -> Object:
    obj = reader.get("", plural, name, namespace)
    if obj is None:
        raise not_found(("", plural), name)
    return obj


def _invalid(name: str, field: str, value: object, why: str) -> StatusError:
    shown = f'"{value}"' if isinstance(value, str) else value
    message = f"Invalid value: {shown}: {why}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": field}
    return invalid(_GROUP, "TokenRequest", name, [cause])
