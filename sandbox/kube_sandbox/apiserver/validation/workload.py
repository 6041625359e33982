"""Validation of workloads that run their pods permanently (k8s.io/kubernetes, pkg/apis/*/validation)."""

from collections.abc import Collection

import orjson

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.storage import selectors
from kube_sandbox.apiserver.validation import causes, texts
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.meta import label_selector, labels
from kube_sandbox.apiserver.validation.pod import template
from kube_sandbox.apiserver.validation.volume import claim_spec

_STATEFUL_SET_CHANGES = (
    "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds'"
)
_STATEFUL_SET_CHANGEABLE = (
    "replicas", "ordinals", "template", "updateStrategy", "revisionHistoryLimit", "minReadySeconds",
    "persistentVolumeClaimRetentionPolicy",
)  # fmt: skip


def deployment(obj: Object, old: Object | None) -> Causes:
    spec = obj["spec"]
    yield from causes.non_negative("spec.replicas", spec["replicas"])
    yield from _selector_and_template(spec, "deployment")
    yield from _deployment_strategy(spec["strategy"], "spec.strategy")
    for field in ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"):
        yield from causes.non_negative(f"spec.{field}", spec.get(field))
    if spec["progressDeadlineSeconds"] <= spec.get("minReadySeconds", 0):
        why = "must be greater than minReadySeconds"
        yield causes.invalid("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], why)
    if old is not None:
        yield from causes.immutable("spec.selector", spec["selector"], old["spec"]["selector"])
        yield from _status(obj["status"], ("updatedReplicas", "readyReplicas", "availableReplicas"))


def replica_set(obj: Object, old: Object | None) -> Causes:
    spec = obj["spec"]
    yield from causes.non_negative("spec.replicas", spec["replicas"])
    yield from causes.non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    # The text of the real server contains "deployment" here, too.
    yield from _selector_and_template(spec, "deployment")
    if old is not None:
        yield from causes.immutable("spec.selector", spec["selector"], old["spec"]["selector"])
        yield from _status(obj["status"], ("fullyLabeledReplicas", "readyReplicas", "availableReplicas"))


def daemon_set(obj: Object, old: Object | None) -> Causes:
    spec = obj["spec"]
    if old is not None:
        yield from causes.immutable("spec.selector", spec["selector"], old["spec"]["selector"])
    wrong = list(label_selector(spec["selector"], "spec.selector"))
    yield from wrong
    if not wrong and not _selects(spec["selector"], spec["template"]):
        yield _mismatch(spec["template"])
    if spec["selector"] is not None and selectors.is_empty(spec["selector"]):
        yield causes.invalid("spec.selector", spec["selector"], "empty selector is invalid for daemonset")
    yield from template(spec["template"], "spec.template")
    yield from _always_restarts(spec["template"], "DaemonSet")
    yield from causes.non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    strategy = spec["updateStrategy"]
    if strategy["type"] == "RollingUpdate":
        yield from _daemon_set_rolling(strategy["rollingUpdate"], "spec.updateStrategy.rollingUpdate")
    elif strategy["type"] != "OnDelete":
        yield causes.unsupported("spec.updateStrategy", _internal_strategy(strategy), ("RollingUpdate", "OnDelete"))
    yield from causes.non_negative("spec.revisionHistoryLimit", spec.get("revisionHistoryLimit"))


def stateful_set(obj: Object, old: Object | None) -> Causes:
    spec = obj["spec"]
    if spec["podManagementPolicy"] not in ("OrderedReady", "Parallel"):
        why = "must be 'OrderedReady' or 'Parallel'"
        yield causes.invalid("spec.podManagementPolicy", spec["podManagementPolicy"], why)
    yield from _stateful_set_strategy(spec["updateStrategy"], "spec.updateStrategy")
    for field, policy in spec["persistentVolumeClaimRetentionPolicy"].items():
        yield from causes.one_of(f"spec.persistentVolumeClaimRetentionPolicy.{field}", policy, ("Retain", "Delete"))
    yield from causes.non_negative("spec.replicas", spec["replicas"])
    yield from causes.non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    if old is None:
        yield from causes.optional("spec.serviceName", spec.get("serviceName"), texts.label_1123)
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            yield from claim_spec(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
    yield from _selector(spec["selector"], "statefulset", "")
    if not _is_valid(spec["selector"]):
        return
    if not _selects(spec["selector"], spec["template"]):
        yield _mismatch(spec["template"])
    yield from template(_with_claims(spec), "spec.template")
    yield from labels(spec["template"]["metadata"].get("labels"), "spec.template.labels")
    yield from _always_restarts(spec["template"], "StatefulSet")
    if old is not None:
        if _without(spec, _STATEFUL_SET_CHANGEABLE) != _without(old["spec"], _STATEFUL_SET_CHANGEABLE):
            why = f"updates to statefulset spec for fields other than {_STATEFUL_SET_CHANGES} are forbidden"
            yield causes.forbidden("spec", why)
        counted = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
        yield from _status(obj["status"], counted, "status.readyReplicas")


def controller_revision(obj: Object, old: Object | None) -> Causes:
    if obj.get("data") is None:
        yield causes.required("data", "data is mandatory")
    yield from causes.non_negative("revision", obj.get("revision"))
    # The real server compares bytes, so the order of keys counts.
    if old is not None and orjson.dumps(obj.get("data")) != orjson.dumps(old.get("data")):
        yield causes.invalid("data", obj.get("data"), causes.IMMUTABLE)


def replication_controller(obj: Object, _: Object | None) -> Causes:
    spec = obj["spec"]
    yield from causes.non_negative("spec.minReadySeconds", spec.get("minReadySeconds"))
    yield from causes.non_empty("spec.selector", spec.get("selector"))
    yield from causes.non_negative("spec.replicas", spec["replicas"])
    if (found := spec.get("template")) is None:
        yield causes.required("spec.template")
        return
    if not _selects({"matchLabels": spec.get("selector")}, found):
        yield _mismatch(found)
    yield from template(found, "spec.template")
    yield from _always_restarts(found, "ReplicationController")


def pod_template(obj: Object, _: Object | None) -> Causes:
    yield from template(obj["template"], "template")


def _selector_and_template(spec: Object, owner: str) -> Causes:
    yield from _selector(spec["selector"], owner, "invalid label selector")
    if not _is_valid(spec["selector"]):
        return
    if not _selects(spec["selector"], spec["template"]):
        yield _mismatch(spec["template"])
    yield from template(spec["template"], "spec.template")
    yield from _always_restarts(spec["template"], "ReplicaSet")


def _selector(selector: Object | None, owner: str, why: str) -> Causes:
    """Validate a selector. `why` is the text of the last cause about an invalid one."""
    if selector is None:
        yield causes.required("spec.selector")
    yield from label_selector(selector, "spec.selector")
    if selector is not None and selectors.is_empty(selector):
        yield causes.invalid("spec.selector", selector, f"empty selector is invalid for {owner}")
    if not _is_valid(selector):
        yield causes.invalid("spec.selector", selector, why)


def _is_valid(selector: Object | None) -> bool:
    return not any(label_selector(selector, "spec.selector"))


def _selects(selector: Object | None, found: Object) -> bool:
    """Whether the selector of a workload selects its own pods. A missing selector selects no pods."""
    if selector is None:
        return False
    return selectors.matches(selector, found["metadata"].get("labels") or {})


def _mismatch(found: Object) -> causes.Cause:
    shown = found["metadata"].get("labels")
    return causes.invalid("spec.template.metadata.labels", shown, "`selector` does not match template `labels`")


def _always_restarts(found: Object, owner: str) -> Causes:
    spec = found["spec"]
    if spec["restartPolicy"] != "Always":
        yield causes.unsupported("spec.template.spec.restartPolicy", spec["restartPolicy"], ("Always",))
    if "activeDeadlineSeconds" in spec:
        why = f"activeDeadlineSeconds in {owner} is not Supported"
        yield causes.forbidden("spec.template.spec.activeDeadlineSeconds", why)


def _deployment_strategy(strategy: Object, path: str) -> Causes:
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "Recreate":
        if rolling is not None:
            why = "may not be specified when strategy `type` is 'Recreate'"
            yield causes.forbidden(f"{path}.rollingUpdate", why)
        return
    if strategy["type"] != "RollingUpdate":
        yield causes.unsupported(path, _internal_strategy(strategy), ("Recreate", "RollingUpdate"))
        return
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]  # type: ignore[index]  # defaulted
    path = f"{path}.rollingUpdate"
    yield from count_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from count_or_percent(surge, f"{path}.maxSurge")
    if _amount(unavailable) == 0 and _amount(surge) == 0:
        yield causes.invalid(f"{path}.maxUnavailable", unavailable, "may not be 0 when `maxSurge` is 0")
    yield from at_most_100_percent(unavailable, f"{path}.maxUnavailable")


def _stateful_set_strategy(strategy: Object, path: str) -> Causes:
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] not in ("RollingUpdate", "OnDelete"):
        yield causes.invalid(path, _internal_strategy(strategy), "must be 'RollingUpdate' or 'OnDelete'")
    elif rolling:
        if strategy["type"] == "OnDelete":
            shown = _internal_strategy(strategy)["RollingUpdate"]
            yield causes.invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")
        yield from causes.non_negative(f"{path}.rollingUpdate.partition", rolling.get("partition"))


def _daemon_set_rolling(rolling: Object, path: str) -> Causes:
    unavailable, surge = rolling["maxUnavailable"], rolling["maxSurge"]
    yield from count_or_percent(unavailable, f"{path}.maxUnavailable")
    yield from count_or_percent(surge, f"{path}.maxSurge")
    yield from at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    yield from at_most_100_percent(surge, f"{path}.maxSurge")
    if _amount(unavailable) and _amount(surge):
        yield causes.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero")
    elif not _amount(unavailable) and not _amount(surge):
        yield causes.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0")


def count_or_percent(value: int | str, path: str) -> Causes:
    if isinstance(value, str):
        yield from causes.invalid_each(path, value, texts.percent(value))
    else:
        yield from causes.non_negative(path, value)


def _amount(value: int | str) -> int:
    if isinstance(value, int):
        return value
    number = value.removesuffix("%")
    return int(number) if number.isascii() and number.isdigit() else 0


def at_most_100_percent(value: int | str, path: str) -> Causes:
    if isinstance(value, str) and not texts.percent(value) and _amount(value) > 100:
        yield causes.invalid(path, value, "must not be greater than 100%")


def _status(status: Object, counted: Collection[str], ready: str = "readyReplicas") -> Causes:
    for field, value in status.items():
        if isinstance(value, int):
            yield from causes.non_negative(f"status.{field}", value)
    total = status.get("replicas", 0)
    for field in counted:
        if status.get(field, 0) > total:
            yield causes.invalid(f"status.{field}", status.get(field, 0), "cannot be greater than status.replicas")
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        why = f"cannot be greater than {ready}"
        yield causes.invalid("status.availableReplicas", status["availableReplicas"], why)


def _internal_strategy(strategy: Object) -> Object:
    """A strategy as the server prints its internal type: with all members, in Go's spelling."""
    rolling = strategy.get("rollingUpdate")
    fields = ("partition", "maxUnavailable") if "partition" in (rolling or ()) else ("maxUnavailable", "maxSurge")
    members = None if rolling is None else {name[0].upper() + name[1:]: rolling.get(name) for name in fields}
    return {"Type": strategy["type"], "RollingUpdate": members}


def _with_claims(spec: Object) -> Object:
    """The pod template with one volume per claim template, like the pods that the controller creates."""
    claims = [claim["metadata"].get("name", "") for claim in spec.get("volumeClaimTemplates") or ()]
    if not claims:
        found: Object = spec["template"]
        return found
    pod = spec["template"]["spec"]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    volumes += [volume for volume in pod.get("volumes") or () if volume["name"] not in claims]
    return {**spec["template"], "spec": {**pod, "volumes": volumes}}


def _without(spec: Object, changeable: Collection[str]) -> Object:
    return {field: value for field, value in spec.items() if field not in changeable}
