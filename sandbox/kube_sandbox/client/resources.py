"""The Kubernetes resources that the simulated controllers and the tests use, and their URLs."""

from dataclasses import dataclass
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the Kubernetes API. The fields are those of discovery."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The URL path of one object; without a name, of the collection in one namespace or in all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", quote(namespace, safe="")]
        parts += [part for part in (self.plural, quote(name, safe=":"), subresource) if part]
        return "/".join(parts)


CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
PODS = Resource("", "v1", "pods", "Pod")
SERVICES = Resource("", "v1", "services", "Service")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")

CONTROLLER_REVISIONS = Resource("apps", "v1", "controllerrevisions", "ControllerRevision")
DAEMON_SETS = Resource("apps", "v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
REPLICA_SETS = Resource("apps", "v1", "replicasets", "ReplicaSet")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
CLONE_SETS = Resource("apps.kruise.io", "v1alpha1", "clonesets", "CloneSet")

JOBS = Resource("batch", "v1", "jobs", "Job")

CLUSTER_ROLE_BINDINGS = Resource(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False
)
CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
DISRUPTION_BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
ENDPOINT_SLICES = Resource("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice")
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")

_ADMISSION = "admissionregistration.k8s.io"
MUTATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False
)
VALIDATING_WEBHOOKS = Resource(
    _ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
