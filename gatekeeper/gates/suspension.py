"""After a release that failed verification, the next one is denied until it is repaired."""

from altershield import releases
from altershield.api import labels
from altershield.api.kinds import WorkloadState
from gatekeeper.gates.bypass import awaited, bypass
from gatekeeper.gates.opinion import NOTHING, Opinion
from gatekeeper.gates.texts import at, warning
from gatekeeper.records import Record
from gatekeeper.review import Change, Denial, Workload
from gatekeeper.view import View

_MAX_PODS = 5
_MAX_DIGITS = 11  # of a Unix time


def deny_suspended(change: Change, view: View) -> Opinion:
    """Deny a changed template while the workload carries `suspend`, also when the setting `blocking` was switched
    off since. The stored object counts, so taking the label off in the same request does not help. The why goes
    out as warnings."""
    old = change.old
    if old is None or old.label(labels.SUSPEND) is None:
        return NOTHING
    release = change.release
    if not release:
        return NOTHING
    passes = bypass(change, view)
    if passes:
        return Opinion(reason=passes, audit={"version": release, "bypass": passes})
    text = f"{change.kind} {change.name} is suspended"
    return Opinion(
        warnings=(*awaited(change), *(warning(line) for line in _why(change, old, view))),
        audit={"version": release, "reason": text},
        denial=Denial(message=text, reason=text),
        reason="suspended",
    )


def _why(change: Change, old: Workload, view: View) -> list[str]:
    version = old.label(labels.VERSION) or ""
    record = view.record(change.namespace, change.workload, version)
    pods = releases.failures(record) if record is not None else ()
    lines = [f"releases of {change.kind} {change.name} are suspended{_since(old)}: {_state(version, record)}"]
    lines += [f"pod {pod.pod} failed: {pod.message or pod.verdict or 'no message'}" for pod in pods[:_MAX_PODS]]
    if len(pods) > _MAX_PODS:
        lines.append(f"and {len(pods) - _MAX_PODS} more pods failed")
    namespace = f" -n {change.namespace}" if change.namespace else ""
    lines += [
        f"to release the repair, label first (it counts once): kubectl label --overwrite {change.kind}{namespace} "
        f"{change.name} {labels.IGNORED_SUSPEND}=true",
        "or, if the verdict is wrong, correct it: kubectl edit changepod --subresource=status"
        f"{namespace}, verdict: pass; or delete the failed pods, new ones are verified again",
    ]
    return lines


def _state(version: str, record: Record | None) -> str:
    """What became of the version that is released now."""
    if record is None:
        return f"version {version or 'unknown'} failed verification (its record is gone)"
    state = releases.state(record)
    if releases.failures(record) or state == WorkloadState.SUSPEND:
        return f"version {version} failed verification"
    why = releases.why(record, current=True)
    return f"version {version} has not passed verification yet ({f'{state}, {why}' if why else state})"


def _since(workload: Workload) -> str:
    since = workload.label(labels.SUSPEND) or ""
    known = since.isascii() and since.isdigit() and len(since) <= _MAX_DIGITS
    return at("since", int(since)) if known else ""
