"""The resources of our kinds. `kube_base.resources` has those of Kubernetes."""

from kube_base.resources import Resource

GROUP = "app.ops.cloud.alipay.com"
API_VERSION = f"{GROUP}/v1alpha1"
"""The API version of our kinds."""

CHANGE_WORKLOADS = Resource(GROUP, "v1alpha1", "changeworkloads", "ChangeWorkload")
CHANGE_PODS = Resource(GROUP, "v1alpha1", "changepods", "ChangePod")
OPS_CONFIG_INFOS = Resource(GROUP, "v1alpha1", "opsconfiginfoes", "OpsConfigInfo")
DEFENSE_POLICIES = Resource(GROUP, "v1alpha1", "defensepolicies", "DefensePolicy")
POD_UNAVAILABLE_BUDGETS = Resource(GROUP, "v1alpha1", "podunavailablebudgets", "PodUnavailableBudget")
RELEASE_WINDOWS = Resource(GROUP, "v1alpha1", "releasewindows", "ReleaseWindow")
FIELD_GUARDS = Resource(GROUP, "v1alpha1", "fieldguards", "FieldGuard")
RELEASE_FREEZES = Resource(GROUP, "v1alpha1", "releasefreezes", "ReleaseFreeze")
RELEASE_LIMITS = Resource(GROUP, "v1alpha1", "releaselimits", "ReleaseLimit")
RELEASE_OVERRIDES = Resource(GROUP, "v1alpha1", "releaseoverrides", "ReleaseOverride")
POD_DELETION_FLOW_CONTROLS = Resource(
    GROUP, "v1alpha1", "poddeletionflowcontrols", "PodDeletionFlowControl", namespaced=False
)
