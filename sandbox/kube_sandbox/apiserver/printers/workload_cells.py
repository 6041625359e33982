"""The cells of workloads, their revisions, budgets and autoscalers."""

from typing import Any

from kube_base.times import unix
from kube_sandbox.apiserver.attributes import Object
from kube_sandbox.apiserver.printers.cells import (
    age_of,
    containers_of,
    first,
    map_text,
    selector_text,
    spec_of,
    status_of,
)
from kube_sandbox.apiserver.printers.humans import age, duration


def deployment(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    return [
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age_of(obj),
        *containers_of(spec.get("template") or {}),
        selector_text(spec.get("selector"), empty=""),
    ]


def replica_set(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    selector = spec.get("selector")
    text = map_text(selector) if obj.get("kind") == "ReplicationController" else selector_text(selector)
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [*counts, age_of(obj), *containers_of(spec.get("template") or {}), text]


def stateful_set(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    ready = f"{status_of(obj).get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [ready, age_of(obj), *containers_of(spec.get("template") or {})]


def daemon_set(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    names = (
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    template = spec.get("template") or {}
    return [
        *(status.get(name, 0) for name in names),
        map_text(spec_of(template).get("nodeSelector")),
        age_of(obj),
        *containers_of(template),
        selector_text(spec.get("selector")),
    ]


def job(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    succeeded, wanted, parallel = status.get("succeeded", 0), spec.get("completions"), spec.get("parallelism") or 0
    if wanted is not None:
        completions = f"{succeeded}/{wanted}"
    else:
        completions = f"{succeeded}/1 of {parallel}" if parallel > 1 else f"{succeeded}/1"
    template = spec.get("template") or {}
    return [
        _job_status(obj),
        completions,
        _job_duration(status),
        age_of(obj),
        *containers_of(template),
        selector_text(spec.get("selector")),
    ]


def _job_status(obj: Object) -> str:
    true = {c["type"] for c in status_of(obj).get("conditions") or () if c.get("status") == "True"}
    for type_, word in (("Complete", "Complete"), ("Failed", "Failed")):
        if type_ in true:
            return word
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for type_ in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if type_ in true:
            return type_
    return "Running"


def _job_duration(status: Object) -> str:
    start, end = status.get("startTime"), status.get("completionTime")
    if not start:
        return ""
    return duration(unix(end) - unix(start)) if end else age(start)


def cron_job(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    job = spec_of(spec.get("jobTemplate") or {})
    last = status.get("lastScheduleTime")
    return [
        spec.get("schedule", ""),
        spec.get("timeZone") or "<none>",
        _boolean(spec.get("suspend")),
        len(status.get("active") or ()),
        age(last) if last else "<none>",
        age_of(obj),
        *containers_of(job.get("template") or {}),
        selector_text(job.get("selector")),
    ]


def _boolean(value: Any) -> str:
    return "<unset>" if value is None else "True" if value else "False"


def budget(obj: Object) -> list[Any]:
    spec = spec_of(obj)
    bounds = [str(spec.get(name, "N/A")) for name in ("minAvailable", "maxUnavailable")]
    return [*bounds, status_of(obj).get("disruptionsAllowed", 0), age_of(obj)]


def autoscaler(obj: Object) -> list[Any]:
    spec, status = spec_of(obj), status_of(obj)
    target = spec.get("scaleTargetRef") or {}
    minimum = spec.get("minReplicas")
    metrics = first([_metric(metric) for metric in spec.get("metrics") or ()], 2, ", ") or "<none>"
    return [
        f"{target.get('kind')}/{target.get('name')}",
        metrics,
        "<unset>" if minimum is None else str(minimum),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age_of(obj),
    ]


def _metric(metric: Object) -> str:
    source = next((value for value in metric.values() if isinstance(value, dict)), {})
    target = source.get("target") or {}
    wanted = (
        f"{target['averageUtilization']}%"
        if "averageUtilization" in target
        else target.get("averageValue") or target.get("value")
    )
    name = f"{source['name']}: " if "name" in source else ""
    return f"{name}<unknown>/{wanted}"


def revision(obj: Object) -> list[Any]:
    owner = next((o for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")), None)
    controller = "<none>"
    if owner:
        group = owner["apiVersion"].rpartition("/")[0]
        controller = f"{owner['kind'].lower()}{'.' if group else ''}{group}/{owner['name']}"
    return [controller, obj.get("revision", 0), age_of(obj)]
