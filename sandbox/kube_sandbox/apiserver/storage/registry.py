"""The served resources: the built-in ones, which one table lists, and those that CRDs add.

The table contains the fields of discovery. Its flags describe how the registries of the real server treat writes
(`k8s.io/kubernetes`, `pkg/registry/*/*/strategy.go`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.storage.store import Storage

READ_WRITE = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource with the fields of discovery. `kind` is (group, version, kind). An empty group and version stand
    for those of the parent resource."""

    name: str
    kind: tuple[str, str, str]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CustomType:
    """One version of a CRD: its structural schema, its printer columns, and the paths of its scale subresource."""

    crd: str
    schema: Object
    preserve_unknown: bool
    columns: tuple[Object, ...]
    scale: Object | None
    deprecation_warning: str
    storage_api_version: str


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One resource of one API version."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = READ_WRITE
    subresources: tuple[Subresource, ...] = ()
    storage: Storage = ("", "")
    flags: frozenset[str] = frozenset()
    fields: tuple[str, ...] = ()
    """The fields that field selectors may name, besides metadata.name and metadata.namespace."""
    custom: CustomType | None = field(default=None, compare=False)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        """Whether clients write `status` through a subresource only."""
        return any(subresource.name == "status" for subresource in self.subresources)

    def subresource(self, name: str) -> Subresource | None:
        return next((found for found in self.subresources if found.name == name), None)


# Flags for the treatment of writes:
GENERATION = "generation"  # metadata.generation counts the changes outside metadata and status
CREATE_ON_PUT = "create-on-put"  # PUT creates an object that does not exist
NEEDS_VERSION = "needs-version"  # PUT must contain the resourceVersion that it replaces
RETURNS_DELETED = "returns-deleted"  # DELETE returns the object instead of a Status
NO_ORPHANS = "no-gc"  # the garbage collector ignores the type
KEEPS_STATUS_ON_CREATE = "keeps-status"  # a create request may contain status

_STATUS_VERBS = ("get", "patch", "update")
_SCALE = Subresource("scale", ("autoscaling", "v1", "Scale"), _STATUS_VERBS)
_CONNECT = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")


def _status(kind: str) -> Subresource:
    return Subresource("status", ("", "", kind), _STATUS_VERBS)


def _builtin(
    group: str,
    version: str,
    plural: str,
    kind: str,
    scope: str = "Namespaced",
    *,
    short: str = "",
    category: str = "",
    subresources: tuple[Subresource, ...] = (),
    status: bool = False,
    flags: str = "",
    verbs: tuple[str, ...] = READ_WRITE,
    fields: str = "",
    storage: Storage | None = None,
) -> ResourceType:
    own = (*subresources, _status(kind)) if status else subresources
    return ResourceType(
        group,
        version,
        plural,
        kind,
        namespaced=scope == "Namespaced",
        singular=kind.lower(),
        list_kind=f"{kind}List" if "list" in verbs else "",
        short_names=tuple(short.split()),
        categories=tuple(category.split()),
        verbs=verbs,
        subresources=tuple(sorted(own, key=lambda subresource: subresource.name)),
        storage=storage or (group, plural),
        flags=frozenset(flags.split()),
        fields=tuple(fields.split()),
    )


_CLUSTER = "Cluster"
_CREATE_ONLY = ("create",)
_EVENT_FIELDS = (
    "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid involvedObject.apiVersion"
    " involvedObject.resourceVersion involvedObject.fieldPath reason reportingComponent source type"
)
_POD_FIELDS = (
    "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName spec.hostNetwork status.phase"
    " status.podIP status.podIPs status.nominatedNodeName"
)
_POD_SUBRESOURCES = (
    Subresource("attach", ("", "v1", "PodAttachOptions"), _CONNECT),
    Subresource("binding", ("", "v1", "Binding"), _CREATE_ONLY),
    Subresource("ephemeralcontainers", ("", "v1", "Pod"), _STATUS_VERBS),
    Subresource("eviction", ("policy", "v1", "Eviction"), _CREATE_ONLY),
    Subresource("exec", ("", "v1", "PodExecOptions"), _CONNECT),
    Subresource("log", ("", "v1", "Pod"), ("get",)),
    Subresource("portforward", ("", "v1", "PodPortForwardOptions"), _CONNECT),
    Subresource("proxy", ("", "v1", "PodProxyOptions"), _PROXY),
    Subresource("resize", ("", "v1", "Pod"), _STATUS_VERBS),
)
_ADMISSION, _STORAGE, _NETWORKING = "admissionregistration.k8s.io", "storage.k8s.io", "networking.k8s.io"
_RBAC, _RESOURCE = "rbac.authorization.k8s.io", "resource.k8s.io"
_AUTHENTICATION, _AUTHORIZATION = "authentication.k8s.io", "authorization.k8s.io"
_FLOW_CONTROL = "flowcontrol.apiserver.k8s.io"
_EXTENSIONS = "api-extensions"

BUILT_IN: tuple[ResourceType, ...] = (
    _builtin("", "v1", "bindings", "Binding", verbs=_CREATE_ONLY),
    _builtin("", "v1", "configmaps", "ConfigMap", short="cm"),
    _builtin("", "v1", "endpoints", "Endpoints", short="ep", flags=CREATE_ON_PUT),
    _builtin("", "v1", "events", "Event", short="ev", flags=f"{CREATE_ON_PUT} {NO_ORPHANS}",
        fields=_EVENT_FIELDS),
    _builtin("", "v1", "limitranges", "LimitRange", short="limits", flags=CREATE_ON_PUT),
    _builtin("", "v1", "namespaces", "Namespace", _CLUSTER, short="ns", status=True, flags=RETURNS_DELETED,
        fields="status.phase",
        verbs=tuple(verb for verb in READ_WRITE if verb != "deletecollection"),
        subresources=(Subresource("finalize", ("", "v1", "Namespace"), ("update",)),)),
    _builtin("", "v1", "nodes", "Node", _CLUSTER, short="no", status=True, flags=KEEPS_STATUS_ON_CREATE,
        fields="spec.unschedulable",
        subresources=(Subresource("proxy", ("", "v1", "NodeProxyOptions"), _PROXY),)),
    _builtin("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim", short="pvc", status=True,
        flags=RETURNS_DELETED),
    _builtin("", "v1", "persistentvolumes", "PersistentVolume", _CLUSTER, short="pv", status=True,
        flags=RETURNS_DELETED),
    _builtin("", "v1", "pods", "Pod", short="po", category="all", status=True,
        flags=f"{GENERATION} {RETURNS_DELETED}",
        fields=_POD_FIELDS, subresources=_POD_SUBRESOURCES),
    _builtin("", "v1", "podtemplates", "PodTemplate", flags=f"{GENERATION} {RETURNS_DELETED}"),
    _builtin("", "v1", "replicationcontrollers", "ReplicationController", short="rc", category="all",
        status=True, flags=GENERATION,
        subresources=(_SCALE,), fields="status.replicas"),
    _builtin("", "v1", "resourcequotas", "ResourceQuota", short="quota", status=True, flags=RETURNS_DELETED),
    _builtin("", "v1", "secrets", "Secret", fields="type"),
    _builtin("", "v1", "serviceaccounts", "ServiceAccount", short="sa", flags=RETURNS_DELETED,
        subresources=(Subresource("token", (_AUTHENTICATION, "v1", "TokenRequest"), _CREATE_ONLY),)),
    _builtin("", "v1", "services", "Service", short="svc", category="all", status=True,
        flags=f"{CREATE_ON_PUT} {RETURNS_DELETED}",
        fields="spec.clusterIP spec.type", subresources=(Subresource("proxy", ("", "v1", "ServiceProxyOptions"),
        _PROXY),)),
    _builtin("apps", "v1", "controllerrevisions", "ControllerRevision"),
    _builtin("apps", "v1", "daemonsets", "DaemonSet", short="ds", category="all", status=True,
        flags=GENERATION),
    _builtin("apps", "v1", "deployments", "Deployment", short="deploy", category="all", status=True,
        flags=GENERATION, subresources=(_SCALE,)),
    _builtin("apps", "v1", "replicasets", "ReplicaSet", short="rs", category="all", status=True,
        flags=GENERATION, subresources=(_SCALE,)),
    _builtin("apps", "v1", "statefulsets", "StatefulSet", short="sts", category="all", status=True,
        flags=GENERATION, subresources=(_SCALE,)),
    _builtin("events.k8s.io", "v1", "events", "Event", short="ev", flags=f"{CREATE_ON_PUT} {NO_ORPHANS}",
        storage=("", "events"),
        fields=_EVENT_FIELDS.replace("involvedObject", "regarding").replace("reportingComponent",
        "reportingController")),
    _builtin(_AUTHENTICATION, "v1", "selfsubjectreviews", "SelfSubjectReview", _CLUSTER, verbs=_CREATE_ONLY),
    _builtin(_AUTHENTICATION, "v1", "tokenreviews", "TokenReview", _CLUSTER, verbs=_CREATE_ONLY),
    _builtin(_AUTHORIZATION, "v1", "localsubjectaccessreviews", "LocalSubjectAccessReview", verbs=_CREATE_ONLY),
    _builtin(_AUTHORIZATION, "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview", _CLUSTER, verbs=_CREATE_ONLY),
    _builtin(_AUTHORIZATION, "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", _CLUSTER, verbs=_CREATE_ONLY),
    _builtin(_AUTHORIZATION, "v1", "subjectaccessreviews", "SubjectAccessReview", _CLUSTER, verbs=_CREATE_ONLY),
    _builtin("autoscaling", "v2", "horizontalpodautoscalers", "HorizontalPodAutoscaler", short="hpa",
        category="all", status=True),
    _builtin("batch", "v1", "cronjobs", "CronJob", short="cj", category="all", status=True, flags=GENERATION),
    _builtin("batch", "v1", "jobs", "Job", category="all", status=True, flags=GENERATION,
        fields="status.successful"),
    _builtin(_NETWORKING, "v1", "ingressclasses", "IngressClass", _CLUSTER, flags=GENERATION),
    _builtin(_NETWORKING, "v1", "ingresses", "Ingress", short="ing", status=True, flags=GENERATION),
    _builtin(_NETWORKING, "v1", "networkpolicies", "NetworkPolicy", short="netpol", flags=GENERATION),
    _builtin("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", short="pdb", status=True,
        flags=f"{GENERATION} {NEEDS_VERSION}"),
    _builtin(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", _CLUSTER, flags=CREATE_ON_PUT),
    _builtin(_RBAC, "v1", "clusterroles", "ClusterRole", _CLUSTER, flags=CREATE_ON_PUT),
    _builtin(_RBAC, "v1", "rolebindings", "RoleBinding", flags=CREATE_ON_PUT),
    _builtin(_RBAC, "v1", "roles", "Role", flags=CREATE_ON_PUT),
    _builtin(_STORAGE, "v1", "storageclasses", "StorageClass", _CLUSTER, short="sc", flags=RETURNS_DELETED),
    _builtin(_ADMISSION, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", _CLUSTER,
        category=_EXTENSIONS,
        flags=f"{GENERATION} {NEEDS_VERSION}"),
    _builtin(_ADMISSION, "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy", _CLUSTER,
        category=_EXTENSIONS, status=True,
        flags=f"{GENERATION} {NEEDS_VERSION}"),
    _builtin(_ADMISSION, "v1", "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", _CLUSTER,
        category=_EXTENSIONS,
        flags=f"{GENERATION} {NEEDS_VERSION}"),
    _builtin(_ADMISSION, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", _CLUSTER,
        category=_EXTENSIONS,
        flags=f"{GENERATION} {NEEDS_VERSION}"),
    _builtin("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", _CLUSTER,
        short="crd crds",
        category=_EXTENSIONS, status=True, flags=f"{GENERATION} {NEEDS_VERSION}"),
    _builtin(_FLOW_CONTROL, "v1", "flowschemas", "FlowSchema", _CLUSTER, status=True, flags=GENERATION),
    _builtin(_FLOW_CONTROL, "v1", "prioritylevelconfigurations", "PriorityLevelConfiguration", _CLUSTER, status=True,
        flags=GENERATION),
    _builtin("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", _CLUSTER, short="pc", flags=GENERATION),
    _builtin("coordination.k8s.io", "v1", "leases", "Lease", flags=f"{CREATE_ON_PUT} {NEEDS_VERSION}"),
    _builtin("node.k8s.io", "v1", "runtimeclasses", "RuntimeClass", _CLUSTER,
        flags=f"{CREATE_ON_PUT} {NEEDS_VERSION}"),
    _builtin("discovery.k8s.io", "v1", "endpointslices", "EndpointSlice", flags=GENERATION),
)  # fmt: skip

CRDS: Storage = ("apiextensions.k8s.io", "customresourcedefinitions")
NAMESPACES: Storage = ("", "namespaces")


class Registry:
    """The resources that the API serves now, in the order of discovery: built-in groups, then groups of CRDs."""

    def __init__(self) -> None:
        self._types: dict[tuple[str, str, str], ResourceType] = {}
        for resource in BUILT_IN:
            self._types[resource.group, resource.version, resource.plural] = resource
        self.changes = 0
        """The number of changes so far. It identifies a version of the OpenAPI documents."""
        self.documents: dict[str, bytes] = {}
        """The encoded OpenAPI documents that were read since the last change, by path and media type."""

    def find(self, group: str, version: str, plural: str) -> ResourceType | None:
        return self._types.get((group, version, plural))

    def __iter__(self) -> Iterator[ResourceType]:
        return iter(self._types.values())

    def is_built_in(self, group: str) -> bool:
        """Whether a group has built-in resources. For other groups the response to an unknown URL is different."""
        return any(resource.group == group for resource in BUILT_IN)

    def of_kind(self, api_version: str, kind: str) -> ResourceType | None:
        return next((r for r in self if r.api_version == api_version and r.kind == kind), None)

    def serve(self, crd: str, resources: list[ResourceType]) -> None:
        """Replace the served versions of a CRD. An empty list removes the CRD from the API."""
        for key, resource in list(self._types.items()):
            if resource.custom is not None and resource.custom.crd == crd:
                del self._types[key]
        for resource in resources:
            self._types[resource.group, resource.version, resource.plural] = resource
        self.changes += 1
        self.documents.clear()

    def group_versions(self) -> dict[str, list[str]]:
        """The versions of each group. The preferred version comes first."""
        groups: dict[str, list[str]] = {}
        for resource in self:
            versions = groups.setdefault(resource.group, [])
            if resource.version not in versions:
                versions.append(resource.version)
        for group, versions in groups.items():
            if any(r.custom for r in self if r.group == group):
                versions.sort(key=version_priority)
        return groups


def version_priority(version: str) -> tuple[Any, ...]:
    """The sort key of a version: v10, v2, v1, v11beta2, v3beta1, v1alpha1, then all other versions by name."""
    stages = {"": 0, "beta": 1, "alpha": 2}
    for stage in ("alpha", "beta", ""):
        major, found, minor = version.removeprefix("v").partition(stage) if stage else (version[1:], "", "")
        if (
            version.startswith("v")
            and bool(found) == bool(stage)
            and major.isdigit()
            and (minor.isdigit() or not stage)
        ):
            return (0, stages[stage], -int(major), -int(minor or 0), "")
    return (1, 0, 0, 0, version)
