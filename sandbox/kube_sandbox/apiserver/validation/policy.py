"""Validation of disruption budgets and autoscalers (k8s.io/kubernetes, pkg/apis/{policy,autoscaling}/validation)."""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.meta import label_selector
from kube_sandbox.apiserver.validation.workload import at_most_100_percent, count_or_percent


def disruption_budget(obj: Object, _: Object | None) -> Causes:
    spec = obj["spec"]
    if "minAvailable" in spec and "maxUnavailable" in spec:
        fields = ("minAvailable", "selector", "maxUnavailable", "unhealthyPodEvictionPolicy")
        shown = {field[0].upper() + field[1:]: spec.get(field) for field in fields}
        yield causes.invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for field in ("minAvailable", "maxUnavailable"):
        if field in spec:
            yield from count_or_percent(spec[field], f"spec.{field}")
            yield from at_most_100_percent(spec[field], f"spec.{field}")
    yield from label_selector(spec.get("selector"), "spec.selector")
    policies = ("AlwaysAllow", "IfHealthyBudget")
    yield from causes.one_of(
        "spec.unhealthyPodEvictionPolicy", spec.get("unhealthyPodEvictionPolicy", "AlwaysAllow"), policies
    )


def autoscaler(obj: Object, _: Object | None) -> Causes:
    spec = obj["spec"]
    if spec["minReplicas"] < 1:
        yield causes.invalid("spec.minReplicas", spec["minReplicas"], "must be greater than or equal to 1")
    if spec["maxReplicas"] < 1:
        yield causes.required("spec.maxReplicas", "must be set and greater than 0")
    if spec["maxReplicas"] < spec["minReplicas"]:
        why = "must be greater than or equal to `minReplicas`"
        yield causes.invalid("spec.maxReplicas", spec["maxReplicas"], why)
    target = spec["scaleTargetRef"]
    for field in ("kind", "name"):
        yield from causes.mandatory(f"spec.scaleTargetRef.{field}", target[field], texts.path_segment)
    version = target.get("apiVersion", "")
    if "/" not in version and version != "v1":
        yield causes.invalid("spec.scaleTargetRef.apiVersion", version, "apiVersion must specify API group")
