"""The resources of Kubernetes and of OpenKruise that AlterShield or the sandbox reads or writes, and their URLs."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple, Self
from urllib.parse import quote


class GroupKind(NamedTuple):
    """A kind of an API group, in any version. Several groups may have a kind of the same name."""

    group: str
    kind: str

    @classmethod
    def of(cls, api_version: str, kind: str) -> Self:
        """The kind that an apiVersion and a kind name. The group is empty for the core group."""
        return cls(api_version.rpartition("/")[0], kind)

    def __str__(self) -> str:
        """The kind alone, as logs show it."""
        return self.kind


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the Kubernetes API, with the names of the discovery API."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    group_kind: GroupKind = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # made once, because the objects in caches refer to it
        object.__setattr__(self, "group_kind", GroupKind(self.group, self.kind))

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """As kubectl understands it, and as a CustomResourceDefinition is named: `deployments.apps`, `pods`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of an object. Without `name`: of the collection in `namespace`, or in all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [part for part in (self.plural, quote(name, safe=":"), subresource) if part]
        return "/".join(parts)

    def is_called(self, word: str, short_names: Collection[str]) -> bool:
        """Whether kubectl understands `word` as this resource: its singular, plural or a short name, in any case,
        optionally with `.GROUP` or `.VERSION.GROUP`."""
        name, _, qualifier = word.lower().partition(".")
        return name in (self.kind.lower(), self.plural, *short_names) and qualifier in (
            "",
            self.group,
            f"{self.version}.{self.group}",
        )


DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")

DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")

JOBS = Resource("batch", "v1", "jobs", "Job")

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
EVENTS = Resource("", "v1", "events", "Event")
SECRETS = Resource("", "v1", "secrets", "Secret")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
RESOURCE_QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SERVICES = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")

_RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(_RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_ROLE_BINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)

TOKEN_REVIEWS = Resource("authentication.k8s.io", "v1", "tokenreviews", "TokenReview", namespaced=False)
SELF_SUBJECT_REVIEWS = Resource(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False
)
SELF_SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", namespaced=False
)
SUBJECT_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview", namespaced=False
)

_ADMISSION = "admissionregistration.k8s.io"
MUTATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
ADMISSION_POLICIES = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", namespaced=False
)
ADMISSION_POLICY_BINDINGS = Resource(
    _ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", namespaced=False
)
_KRUISE = "apps.kruise.io"
CLONE_SETS = Resource(_KRUISE, "v1alpha1", "clonesets", "CloneSet")
RESTART_REQUESTS = Resource(_KRUISE, "v1alpha1", "containerrecreaterequests", "ContainerRecreateRequest")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
