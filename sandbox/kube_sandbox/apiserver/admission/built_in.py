"""The default admission plugins: NamespaceLifecycle, ServiceAccount, Priority and DefaultTolerationSeconds, and of
PodSecurity the rule about the namespaces of the host.

They change `attributes.obj` or raise StatusError. The rules are those of `k8s.io/kubernetes`, `plugin/pkg/admission`,
and `k8s.io/apiserver`, `pkg/admission/plugin/namespace`.
"""

import secrets
from typing import Any

from kube_sandbox.apiserver import errors
from kube_sandbox.apiserver.attributes import Attributes, Object, Reader
from kube_sandbox.apiserver.errors import StatusError
from kube_sandbox.apiserver.storage.registry import NAMESPACES
from kube_sandbox.apiserver.storage.store import not_found

IMMORTAL_NAMESPACES = ("default", "kube-system", "kube-public")
_ACCESS_REVIEWS = ("authorization.k8s.io", "localsubjectaccessreviews")
_NO_EXECUTE_SECONDS = 300
_TOKEN_SECONDS = 3607
_TOKEN_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  (a path)
_NAME_CHARACTERS = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names. There are no vowels, so that the names do not form words."""


def suffix() -> str:
    """A random suffix of five characters for a generated name."""
    return "".join(secrets.choice(_NAME_CHARACTERS) for _ in range(5))


def admit(attributes: Attributes, reader: Reader) -> None:
    """Run the plugins. They run before the webhooks."""
    _namespace_lifecycle(attributes, reader)
    if attributes.operation == "CREATE" and not attributes.subresource and attributes.obj is not None:
        match attributes.group, attributes.plural:
            case "", "pods":
                _service_account(attributes, attributes.obj, reader)
                _priority(attributes, attributes.obj, reader)
                _tolerations(attributes.obj)
                _pod_security(attributes, attributes.obj, reader)


def forbidden(attributes: Attributes, why: str) -> StatusError:
    """403 with the text of an admission plugin."""
    metadata = (attributes.obj or {}).get("metadata") or {}
    name = attributes.name or metadata.get("name") or metadata.get("generateName") or "Unknown"
    return errors.forbidden(attributes.group, attributes.plural, name, why)


def _namespace_lifecycle(attributes: Attributes, reader: Reader) -> None:
    """Reject writes in a namespace that does not exist, creates in one that is being deleted, and the deletion of the
    namespaces that every cluster needs."""
    if (attributes.group, attributes.plural) == ("", "namespaces"):
        if attributes.operation == "DELETE" and attributes.name in IMMORTAL_NAMESPACES:
            raise forbidden(attributes, "this namespace may not be deleted")
        return
    if not attributes.namespace or attributes.operation == "DELETE":
        return
    if (attributes.group, attributes.plural) == _ACCESS_REVIEWS:
        return
    namespace = reader.get("", "namespaces", attributes.namespace)
    if namespace is None:
        raise not_found(NAMESPACES, attributes.namespace)
    if attributes.operation == "CREATE" and namespace.get("status", {}).get("phase") == "Terminating":
        error = forbidden(
            attributes,
            f"unable to create new content in namespace {attributes.namespace} because it is being terminated",
        )
        error.details = (error.details or {}) | {
            "causes": [
                {
                    "reason": "NamespaceTerminating",
                    "message": f"namespace {attributes.namespace} is being terminated",
                    "field": "metadata.namespace",
                }
            ]
        }
        raise error


def _service_account(attributes: Attributes, pod: Object, reader: Reader) -> None:
    """Set the ServiceAccount of a pod and mount its token. The ServiceAccount `default` may not exist yet, because a
    controller creates it; then the pod gets no token."""
    if "kubernetes.io/config.mirror" in (pod["metadata"].get("annotations") or {}):
        return
    spec: dict[str, Any] = pod["spec"]
    name = spec.get("serviceAccountName") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    account = reader.get("", "serviceaccounts", name, attributes.namespace)
    if account is None:
        if name == "default":
            return
        raise forbidden(
            attributes,
            f'error looking up service account {attributes.namespace}/{name}: serviceaccount "{name}" not found',
        )
    if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
        _mount_token(spec)


def _mount_token(spec: dict[str, Any]) -> None:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    bare = [
        container
        for container in containers
        if all(mount.get("mountPath") != _TOKEN_PATH for mount in container.get("volumeMounts") or ())
    ]
    if not bare:
        return
    name = f"kube-api-access-{suffix()}"
    for container in bare:
        mount = {"name": name, "readOnly": True, "mountPath": _TOKEN_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    volume = {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}
    spec["volumes"] = [*(spec.get("volumes") or ()), volume]


def _pod_security(attributes: Attributes, pod: Object, reader: Reader) -> None:
    """Reject a pod that uses a namespace of the host, if its Namespace enforces a level that forbids this."""
    namespace = reader.get("", "namespaces", attributes.namespace) or {}
    level = ((namespace.get("metadata") or {}).get("labels") or {}).get("pod-security.kubernetes.io/enforce")
    used = [f"{field}=true" for field in ("hostNetwork", "hostPID", "hostIPC") if pod["spec"].get(field)]
    if level in ("baseline", "restricted") and used:
        raise forbidden(attributes, f'violates PodSecurity "{level}:latest": host namespaces ({", ".join(used)})')


def _priority(attributes: Attributes, pod: Object, reader: Reader) -> None:
    """Set the priority and the preemption policy of a pod from its PriorityClass."""
    spec = pod["spec"]
    value, policy = 0, "PreemptLowerPriority"
    built_in = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
    if name := spec.get("priorityClassName"):
        found = reader.get("scheduling.k8s.io", "priorityclasses", name)
        if found is not None:
            value, policy = found.get("value", 0), found.get("preemptionPolicy", policy)
        elif name in built_in:
            value = built_in[name]
        else:
            raise forbidden(attributes, f"no PriorityClass with name {name} was found")
    else:
        classes = reader.list("scheduling.k8s.io", "priorityclasses")
        if default := next((found for found in classes if found.get("globalDefault")), None):
            spec["priorityClassName"] = default["metadata"]["name"]
            value, policy = default.get("value", 0), default.get("preemptionPolicy", policy)
    spec["priority"] = value
    spec.setdefault("preemptionPolicy", policy)


def _tolerations(pod: Object) -> None:
    """Add tolerations, so that a pod stays for five minutes on a node that is not ready or unreachable."""
    tolerations = list(pod["spec"].get("tolerations") or ())
    for key in ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"):
        if any(t.get("key", key) == key and t.get("effect") in (None, "", "NoExecute") for t in tolerations):
            continue
        tolerations.append(
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NO_EXECUTE_SECONDS}
        )
    pod["spec"]["tolerations"] = tolerations
