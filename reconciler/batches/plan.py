"""The checks that a batch needs. They follow from the DefensePolicy of its release."""

from collections.abc import Mapping

from altershield.api.change_pod import ChangePod
from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_specs import CheckPhase, CheckSpec, Phase, ServerCheck
from reconciler.batches.check_run import Planned
from reconciler.batches.conclusion import SERVER_CHECK
from reconciler.checks.check import Availability, Check, Subject, entry_of

HEALTH, LOGS, SERVER, PROMETHEUS, HTTP, JOB = "health", "logs", "server", "prometheus", "http", "job"

Checks = Mapping[str, Check]
"""The checks that the reconciler can run, by kind: the field of CheckSpec that is set."""

_DEFAULT = CheckSpec(name=SERVER_CHECK, server=ServerCheck())


_WHY_NOT = {
    "": "this release of AlterShield does not know the kind of this check",
    SERVER: "checks of the kind server cannot run: no AlterShield server is configured (--server-url)",
}


def kind_of(spec: CheckSpec) -> str:
    """The kind of a check; empty if the check has no known kind."""
    kinds = {
        HEALTH: spec.health,
        LOGS: spec.logs,
        SERVER: spec.server,
        PROMETHEUS: spec.prometheus,
        HTTP: spec.http,
        JOB: spec.job,
    }
    return next((kind for kind, value in kinds.items() if value is not None), "")


def plan(release: ChangeWorkload | None, checks: Checks, phase: str = "") -> tuple[Planned, ...]:
    """The checks of a release's batches, or of this phase. If its policy has no checks, the check of the AlterShield
    server of each batch, if a server is configured."""
    specs = release.spec.policy.checks if release is not None else ()
    if not specs and SERVER in checks and not phase:
        specs = (_DEFAULT,)
    specs = tuple(each for each in specs if each.phase == (phase or CheckPhase.POST_BATCH))
    return tuple(_planned(spec, checks.get(kind_of(spec))) for spec in specs)


def _planned(spec: CheckSpec, check: Check | None) -> Planned:
    if check is None:
        kind = kind_of(spec)
        default = f"checks of the kind {kind} cannot run: this reconciler sends no requests to URLs of policies"
        return Planned(spec, Availability.NOT_CONFIGURED, why_not=_WHY_NOT.get(kind, default))
    return Planned(spec, check.availability, check.repeatable)


def subject(
    change_pod: ChangePod,
    release: ChangeWorkload,
    planned: Planned,
    phase: Phase,
    old_pods: tuple[str, ...] = (),
) -> Subject:
    """The subject of a request to a check. `old_pods`: see `Subject.old_pods`."""
    status = change_pod.status
    entry = entry_of(status.checks, planned.spec.name, phase)
    started = float(entry.start_time_unix) if entry is not None else 0.0
    default = status.pre_timeout_threshold if phase is Phase.PRE else status.post_timeout_threshold
    return Subject(
        change_pod=change_pod,
        release=release,
        check=planned.spec,
        phase=phase,
        started=started,
        deadline=started + (planned.spec.timeout_seconds or default),
        old_pods=old_pods,
    )
