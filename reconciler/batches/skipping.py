"""Reports to an AlterShield server that a person approved a batch which the server's check failed: the server marks the
failed rules as ignored.

The approval is stored in the ChangePod first, together with the request to report it (`checks[].skip`). After the
report, the server refuses all calls about the node. So a report is sent only when the check has ended and the batch is
done. It is sent once, and again only if it certainly did not arrive. If it fails, no verdict changes, and `skip` has
the reason.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from altershield.api.change_pod import ChangePod, ChangePodStatus, PodState
from altershield.api.change_workload import ChangeWorkload
from altershield.api.check_results import CheckResult, CheckState, Skip, SkipState
from altershield.api.check_specs import Phase
from altershield.api.pod_verdicts import Verdict
from altershield.workloads.pods import clip
from kube_base.access.errors import ConflictError
from reconciler.batches.conclusion import text_of
from reconciler.batches.metrics import BatchMetrics
from reconciler.checks.check import Availability
from reconciler.cluster.writer import Writer
from reconciler.server.server_errors import AlterShieldServerError, UnavailableError

logger = logging.getLogger(__name__)

_RETRY_SECONDS = 10.0
_LIMIT_SECONDS = 600.0  # after an approval, during which the report to an unreachable server is tried again
_ATTEMPTS = 5  # to store the outcome while somebody else writes the ChangePod


class SkipServer(Protocol):
    """The part of an AlterShield server's client that is about approvals."""

    @property
    def availability(self) -> Availability:
        """Whether a request can be sent now."""
        ...

    async def skip(
        self, release: ChangeWorkload, node: str, phase: Phase, rules: Sequence[str], operator: str, comment: str
    ) -> None:
        """Mark rules as ignored. AlterShieldServerError."""
        ...


def requested(status: ChangePodStatus, now: float) -> ChangePodStatus:
    """The status with the request to report an approval, if the server's check failed and all failed rules may be
    ignored. `now` is in Unix seconds."""
    if status.status != PodState.EXECUTE_DONE:
        return status
    wanted = Skip(SkipState.REQUESTED, time_unix=int(now))
    checks = tuple(
        msgspec.structs.replace(each, skip=wanted)
        if each.state == CheckState.FAILED
        and each.skip is None
        and each.rules
        and all(rule.ignorable and rule.id for rule in each.rules)
        else each
        for each in status.checks
    )
    return msgspec.structs.replace(status, checks=checks)


class Skipper:
    """`server` is None if none is configured. `clock` returns Unix seconds."""

    def __init__(
        self, server: SkipServer | None, writer: Writer, metrics: BatchMetrics, clock: Callable[[], float]
    ) -> None:
        self._server = server
        self._metrics = metrics
        self._writer = writer
        self._clock = clock

    async def tell(self, change_pod: ChangePod, release: ChangeWorkload | None) -> float | None:
        """Report the approval of a batch that is done to the server, if this was requested. Returns the seconds until
        the next attempt, or None."""
        entry = next((each for each in change_pod.status.checks if each.skip is not None), None)
        if entry is None or entry.skip is None:
            return None
        skip = entry.skip
        if skip.state == SkipState.SENT:  # the process died meanwhile
            reason = "it is not known whether the request arrived: the reconciler stopped before the answer"
            await self._failed(change_pod, reason)
        if skip.state != SkipState.REQUESTED:
            return None
        why_not = self._why_not(change_pod, release, entry, skip)
        if why_not or self._server is None or release is None:
            await self._failed(change_pod, why_not)
            return None
        if self._server.availability is Availability.UNREACHABLE:
            return _RETRY_SECONDS
        change_pod = await self._writer.save_batch(change_pod, _with(change_pod.status, skip, SkipState.SENT))
        operator, comment = _approval(change_pod)
        node, rules = change_pod.status.change_pod_id, [rule.id for rule in entry.rules]
        try:
            await self._server.skip(release, node, Phase(entry.phase), rules, operator, comment)
        except UnavailableError as error:
            if not error.delivered:
                await self._store(change_pod, SkipState.REQUESTED, str(error))
                return _RETRY_SECONDS
            await self._failed(change_pod, f"it is not known whether the request arrived: {error}")
        except AlterShieldServerError as error:
            await self._failed(change_pod, str(error))
        else:
            self._metrics.skips.labels("done").inc()
            await self._store(change_pod, SkipState.DONE)
        return None

    def _why_not(self, change_pod: ChangePod, release: ChangeWorkload | None, entry: CheckResult, skip: Skip) -> str:
        """The reason why the approval is not reported; empty if it is to be reported."""
        failed = [each for each in change_pod.status.pod_results if each.verdict not in ("", Verdict.PASS)]
        if any(each.message != text_of(entry) for each in failed):  # pods that are gone keep the check's verdict
            return "a pod of the batch has failed since"
        if self._server is None:
            return "no AlterShield server is configured"
        if release is None:
            return "the ChangeWorkload does not exist any more"
        if self._server.availability is Availability.SWITCHED_OFF:
            return "the AlterShield server is switched off"
        if self._clock() > skip.time_unix + _LIMIT_SECONDS:
            return f"the AlterShield server could not be reached for {_LIMIT_SECONDS:.0f} s; {skip.reason}"
        return ""

    async def _failed(self, change_pod: ChangePod, reason: str) -> None:
        logger.warning(
            "the AlterShield server was not told of an approval; the approval holds",
            extra={"object": f"{change_pod.metadata.namespace}/{change_pod.metadata.name}", "cause": reason},
        )
        self._metrics.skips.labels("failed").inc()
        await self._store(change_pod, SkipState.FAILED, reason)

    async def _store(self, change_pod: ChangePod, state: SkipState, reason: str = "") -> None:
        """Store the outcome, also if somebody else has changed the ChangePod meanwhile."""
        for _ in range(_ATTEMPTS - 1):
            try:
                return await self._write(change_pod, state, reason)
            except ConflictError:
                change_pod = await self._writer.read_batch(change_pod)
        return await self._write(change_pod, state, reason)

    async def _write(self, change_pod: ChangePod, state: SkipState, reason: str) -> None:
        for entry in change_pod.status.checks:
            if entry.skip is not None:
                await self._writer.save_batch(change_pod, _with(change_pod.status, entry.skip, state, reason))
                return


def _with(status: ChangePodStatus, skip: Skip, state: SkipState, reason: str = "") -> ChangePodStatus:
    """The status with this state of the skip."""
    changed = Skip(state, clip(reason, 1000), skip.time_unix)

    def replaced(entry: CheckResult) -> CheckResult:
        return entry if entry.skip is None else msgspec.structs.replace(entry, skip=changed)

    return msgspec.structs.replace(status, checks=tuple(map(replaced, status.checks)))


def _approval(change_pod: ChangePod) -> tuple[str, str]:
    """The user who approved the batch, and why. The API server makes sure that no user writes the name of another one
    into a result, except for AlterShield."""
    results = change_pod.status.pod_results
    found = next((each for each in results if each.by and each.verdict == Verdict.PASS), None)
    return (found.by, found.message) if found is not None else ("unknown", "approved")
