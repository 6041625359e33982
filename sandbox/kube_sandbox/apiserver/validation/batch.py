"""Validation of jobs (k8s.io/kubernetes, pkg/apis/batch/validation)."""

from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.validation import causes
from kube_sandbox.apiserver.validation.causes import Causes
from kube_sandbox.apiserver.validation.pod import template


def job(obj: Object, old: Object | None) -> Causes:
    yield from _job_spec(obj["spec"], "spec")
    if old is None:
        return
    before = old["spec"]
    yield from causes.immutable("spec.completions", obj["spec"].get("completions"), before.get("completions"))
    yield from causes.immutable("spec.selector", obj["spec"].get("selector"), before.get("selector"))
    if not before.get("suspend"):
        yield from causes.immutable("spec.template", obj["spec"]["template"], before["template"])
    yield from causes.immutable("spec.completionMode", obj["spec"]["completionMode"], before["completionMode"])


def cron_job(obj: Object, old: Object | None) -> Causes:
    spec = obj["spec"]
    if not spec["schedule"]:
        yield causes.required("spec.schedule")
    elif not spec["schedule"].startswith("@") and len(fields := spec["schedule"].split()) != 5:
        why = f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]"
        yield causes.invalid("spec.schedule", spec["schedule"], why)
    yield from causes.non_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
    yield from causes.one_of("spec.concurrencyPolicy", spec["concurrencyPolicy"], ("Allow", "Forbid", "Replace"))
    yield from _job_spec(spec["jobTemplate"]["spec"], "spec.jobTemplate.spec")
    for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
        yield from causes.non_negative(f"spec.{field}", spec.get(field))
    if old is None and len(name := obj["metadata"].get("name", "")) > 52:
        yield causes.invalid("metadata.name", name, "must be no more than 52 characters")


def _job_spec(spec: Object, path: str) -> Causes:
    for field in (
        "parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished",
        "backoffLimitPerIndex", "maxFailedIndexes",
    ):  # fmt: skip
        yield from causes.non_negative(f"{path}.{field}", spec.get(field))
    mode = spec.get("completionMode", "NonIndexed")
    yield from causes.one_of(f"{path}.completionMode", mode, ("NonIndexed", "Indexed"))
    if mode == "Indexed" and "completions" not in spec:
        yield causes.required(f"{path}.completions", "when completion mode is Indexed")
    yield from template(spec["template"], f"{path}.template")
    policy = spec["template"]["spec"]["restartPolicy"]
    if policy == "Always":
        yield causes.required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    elif policy not in ("OnFailure", "Never"):
        yield causes.unsupported(f"{path}.template.spec.restartPolicy", policy, ("OnFailure", "Never"))
