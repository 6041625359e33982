"""The ClusterRoles and ClusterRoleBindings of a new cluster.

They are the roles for users in kube-apiserver's `plugin/pkg/auth/authorizer/rbac/bootstrappolicy`, and that of the
scheduler. The roles of controllers are omitted: the simulation gives its controllers the rights of administrators. The
rules of admin, edit and view result from role aggregation.
"""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.auth.authorization import GROUP, Rule

_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_ALL = "create delete deletecollection get list patch update watch"
_HEALTH = "/healthz /livez /readyz /version /version/"

_Text = tuple[str, str, str]
"""A rule as three lists of words: verbs, API groups (`core` for the empty group), resources; or verbs, "", URLs."""

_ROLES: dict[str, list[_Text]] = {
    "cluster-admin": [("*", "*", "*"), ("*", "", "*")],
    "system:aggregate-to-admin": [
        ("create", "authorization.k8s.io", "localsubjectaccessreviews"),
        (_ALL, GROUP, "rolebindings roles"),
    ],
    "system:aggregate-to-edit": [
        (_READ, "core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
        ("impersonate", "core", "serviceaccounts"),
        (_WRITE, "core", "pods pods/attach pods/exec pods/portforward pods/proxy"),
        ("create", "core", "pods/eviction"),
        (
            _WRITE,
            "core",
            "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets "
            "serviceaccounts services services/proxy",
        ),
        ("create", "core", "serviceaccounts/token"),
        (_WRITE, "core events.k8s.io", "events"),
        (
            _WRITE,
            "apps",
            "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
            "statefulsets statefulsets/scale",
        ),
        (_WRITE, "autoscaling", "horizontalpodautoscalers"),
        (_WRITE, "batch", "cronjobs jobs"),
        (
            _WRITE,
            "extensions",
            "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets "
            "replicasets/scale replicationcontrollers/scale",
        ),
        (_WRITE, "policy", "poddisruptionbudgets"),
        (_WRITE, "networking.k8s.io", "ingresses networkpolicies"),
        (_ALL, "coordination.k8s.io", "leases"),
        (_WRITE, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
    ],
    "system:aggregate-to-view": [
        (
            _READ,
            "core",
            "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
            "replicationcontrollers/scale serviceaccounts services services/status",
        ),
        (
            _READ,
            "core",
            "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
            "resourcequotas resourcequotas/status",
        ),
        (_READ, "core", "namespaces"),
        (_READ, "core events.k8s.io", "events"),
        (_READ, "discovery.k8s.io", "endpointslices"),
        (
            _READ,
            "apps",
            "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "
            "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
        ),
        (_READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
        (_READ, "batch", "cronjobs cronjobs/status jobs jobs/status"),
        (
            _READ,
            "extensions",
            "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
            "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
            "replicationcontrollers/scale",
        ),
        (_READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
        (_READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
        (_READ, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
    ],
    "system:auth-delegator": [
        ("create", "authentication.k8s.io", "tokenreviews"),
        ("create", "authorization.k8s.io", "subjectaccessreviews"),
    ],
    "system:basic-user": [
        ("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        ("create", "authentication.k8s.io", "selfsubjectreviews"),
    ],
    "system:discovery": [
        ("get", "", "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/")
    ],
    "system:kube-scheduler": [
        (_READ, "core", "nodes persistentvolumeclaims persistentvolumes pods replicationcontrollers services"),
        ("create", "core", "bindings pods/binding"),
        ("delete", "core", "pods"),
        ("patch update", "core", "pods/status"),
        ("create patch update", "core events.k8s.io", "events"),
        (_READ, "apps", "replicasets statefulsets"),
        (_READ, "policy", "poddisruptionbudgets"),
    ],
    "system:monitoring": [
        (
            "get",
            "",
            "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz",
        ),
        ("get", "core", "nodes/metrics"),
    ],
    "system:public-info-viewer": [("get", "", _HEALTH)],
}
_AGGREGATING = {
    "admin": {},
    "edit": {f"{GROUP}/aggregate-to-admin": "true"},
    "view": {f"{GROUP}/aggregate-to-edit": "true"},
}
_BINDINGS = {
    "cluster-admin": ["system:masters"],
    "system:basic-user": ["system:authenticated"],
    "system:discovery": ["system:authenticated"],
    "system:monitoring": ["system:monitoring"],
    "system:public-info-viewer": ["system:authenticated", "system:unauthenticated"],
}


def objects() -> list[Object]:
    """ClusterRoles, then ClusterRoleBindings, as manifests."""
    roles = [_role(name, [_rule(text) for text in texts], _labels(name)) for name, texts in _ROLES.items()]
    for name, labels in _AGGREGATING.items():
        selector = {"matchLabels": {f"{GROUP}/aggregate-to-{name}": "true"}}
        roles.append({**_role(name, [], labels), "aggregationRule": {"clusterRoleSelectors": [selector]}})
    bindings = [_binding(name, *(("Group", group) for group in groups)) for name, groups in _BINDINGS.items()]
    return [*roles, *bindings, _binding("system:kube-scheduler", ("User", "system:kube-scheduler"))]


def _labels(role: str) -> dict[str, str]:
    aggregates = role.startswith("system:aggregate-to-")
    return {f"{GROUP}/{role.removeprefix('system:')}": "true"} if aggregates else {}


def _rule(text: _Text) -> Rule:
    verbs, groups, resources = (words.split() for words in text)
    if not groups:
        return {"nonResourceURLs": resources, "verbs": verbs}
    return {"apiGroups": ["" if group == "core" else group for group in groups], "resources": resources, "verbs": verbs}


def _role(name: str, rules: list[Rule], labels: dict[str, str]) -> Object:
    return {**_header("ClusterRole", name, labels), "rules": rules}


def _binding(name: str, *subjects: tuple[str, str]) -> Object:
    """A binding of the role of this name. Subjects are kinds and names."""
    return {
        **_header("ClusterRoleBinding", name, {}),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": GROUP, "kind": kind, "name": subject} for kind, subject in subjects],
    }


def _header(kind: str, name: str, labels: dict[str, str]) -> Object:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
        },
    }
