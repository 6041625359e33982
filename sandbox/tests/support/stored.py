"""Objects in memory, with the interface by which the parts of the API server read the store."""

from collections.abc import Sequence

from kube_sandbox.apiserver.attributes import Object

_PLURALS = {
    "Namespace": "namespaces",
    "ServiceAccount": "serviceaccounts",
    "Pod": "pods",
    "Node": "nodes",
    "Secret": "secrets",
    "Service": "services",
    "Endpoints": "endpoints",
    "EndpointSlice": "endpointslices",
    "Role": "roles",
    "RoleBinding": "rolebindings",
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "MutatingWebhookConfiguration": "mutatingwebhookconfigurations",
    "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": "validatingadmissionpolicybindings",
    "CustomResourceDefinition": "customresourcedefinitions",
}


class Stored:
    """Implements `attributes.Reader`."""

    def __init__(self, *objects: Object) -> None:
        self.objects: list[Object] = list(objects)

    def add(self, *objects: Object) -> None:
        self.objects.extend(objects)

    def get(self, group: str, plural: str, name: str, namespace: str = "") -> Object | None:
        found = (obj for obj in self.list(group, plural, namespace) if obj["metadata"]["name"] == name)
        return next(found, None)

    def list(self, group: str, plural: str, namespace: str = "") -> Sequence[Object]:
        return [
            obj
            for obj in self.objects
            if _PLURALS[obj["kind"]] == plural
            and obj["apiVersion"].rpartition("/")[0] == group
            and namespace in ("", obj["metadata"].get("namespace", ""))
        ]


def an_object(kind: str, name: str, namespace: str = "", *, api_version: str = "v1", **rest: object) -> Object:
    """An object whose uid is derived from its name."""
    metadata = {"name": name, "uid": f"uid-of-{name}"} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest}


_RBAC = "rbac.authorization.k8s.io/v1"


def a_role(name: str, *rules: Object, namespace: str = "") -> Object:
    kind = "Role" if namespace else "ClusterRole"
    return an_object(kind, name, namespace, api_version=_RBAC, rules=list(rules))


def a_binding(name: str, role: str, *subjects: Object, namespace: str = "", role_kind: str = "") -> Object:
    return an_object(
        "RoleBinding" if namespace else "ClusterRoleBinding",
        name,
        namespace,
        api_version=_RBAC,
        roleRef={
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": role_kind or ("Role" if namespace else "ClusterRole"),
            "name": role,
        },
        subjects=list(subjects),
    )


def a_rule(verbs: str, resources: str, group: str = "", names: str = "") -> Object:
    rule: Object = {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}
    return rule | ({"resourceNames": names.split()} if names else {})


def user(name: str) -> Object:
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def group(name: str) -> Object:
    return {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def service_account(name: str, namespace: str = "") -> Object:
    return {"kind": "ServiceAccount", "name": name} | ({"namespace": namespace} if namespace else {})
