"""The permissions of kubelets, which the Node authorizer of Kubernetes gives to the group `system:nodes`.

The rules are those of kube-apiserver's `bootstrappolicy.NodeRules`. Unlike the Node authorizer, this module does not
check that an object belongs to the node of the kubelet.
"""

from kube_sandbox.apiserver.attributes import User

GROUP = "system:nodes"
_PREFIX = "system:node:"
_READ, _WRITE = "get list watch", "create delete patch update"

_TEXTS: tuple[tuple[str, str, str], ...] = (
    ("create", "authentication.k8s.io", "tokenreviews"),
    ("create", "authorization.k8s.io", "subjectaccessreviews localsubjectaccessreviews"),
    (_READ, "", "services"),
    (f"create {_READ} patch update", "", "nodes"),
    ("patch update", "", "nodes/status"),
    ("create patch update", "", "events"),
    (f"create delete {_READ}", "", "pods"),
    ("patch update", "", "pods/status"),
    ("create", "", "pods/eviction"),
    (_READ, "", "secrets configmaps"),
    ("get", "", "persistentvolumeclaims persistentvolumes"),
    ("create", "", "serviceaccounts/token"),
    (f"get {_WRITE}", "coordination.k8s.io", "leases"),
    (_READ, "node.k8s.io", "runtimeclasses"),
)


def is_node(user: User) -> bool:
    return GROUP in user.groups and user.name.startswith(_PREFIX)


RULES = [
    {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()} for verbs, group, resources in _TEXTS
]
