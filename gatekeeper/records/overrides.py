"""Uses of ReleaseOverrides. A use is recorded before the release is admitted."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from altershield.api.gates.overrides import ReleaseOverride
from altershield.gates import texts
from altershield.gates.overrides import Asked, passing, used
from altershield.gates.release import Closed
from gatekeeper.records.shared_status import Decision, SharedStatus
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.access.informer import Informer

logger = logging.getLogger(__name__)

_SECONDS = 3.0  # for one release


class Overridden(NamedTuple):
    """A release passes closed gates."""

    overrides: tuple[str, ...]
    """`NAMESPACE/NAME` of each."""
    problem: str = ""
    """Why it does not pass after all: a use could not be recorded."""


class Overrides(Protocol):
    """The ReleaseOverrides, as handlers see them. Only `use` sends requests to the API server."""

    def match(self, closed: Sequence[Closed], asked: Asked, now: float) -> bool:
        """Whether overrides pass all closed gates, by the cache."""

    async def use(self, closed: Sequence[Closed], asked: Asked, now: float, *, dry_run: bool) -> Overridden | None:
        """Let the release pass. The uses are stored before this returns, unless it is a dry run. None: a gate stays
        closed."""


class RecordedOverrides:
    """The overrides in a cache. `clock` returns Unix seconds by the API server's clock."""

    def __init__(
        self, client: Client, informer: Informer[ReleaseOverride], system_namespace: str, clock: Callable[[], float]
    ) -> None:
        self._informer = informer
        self._system_namespace = system_namespace
        self._clock = clock
        self._uses: SharedStatus[ReleaseOverride, tuple[Asked, tuple[str, ...]], bool] = SharedStatus(
            client, informer, ReleaseOverride, self._record
        )

    def match(self, closed: Sequence[Closed], asked: Asked, now: float) -> bool:
        return bool(len(self._informer)) and self._passing(closed, asked, now) is not None

    async def use(self, closed: Sequence[Closed], asked: Asked, now: float, *, dry_run: bool) -> Overridden | None:
        found = self._passing(closed, asked, now)
        if found is None:
            return None
        if dry_run:
            return Overridden(tuple(found))
        for name, (override, gates) in found.items():
            passed = tuple(texts.named(each) for each in gates)
            try:
                async with asyncio.timeout(_SECONDS):
                    answered = await self._uses.ask(override.metadata, (asked, passed))
            except (KubernetesError, TimeoutError) as error:
                cause = str(error) or "it took too long"
                logger.warning("cannot record the use of an override", extra={"object": name, "cause": cause})
                return Overridden((), f"the use of ReleaseOverride {name} could not be recorded: {cause}; try again")
            if answered is None or not answered.answer:
                return None
        return Overridden(tuple(found))

    def _passing(
        self, closed: Sequence[Closed], asked: Asked, now: float
    ) -> dict[str, tuple[ReleaseOverride, tuple[Closed, ...]]] | None:
        return passing(closed, self._informer.all(), asked, self._system_namespace, now)

    def _record(
        self, override: ReleaseOverride, requests: Sequence[tuple[Asked, tuple[str, ...]]]
    ) -> Decision[ReleaseOverride, bool]:
        """Record the uses that are left."""
        now, present, answers = self._clock(), override, []
        for asked, gates in requests:
            after = used(present, asked, gates, now)
            answers.append(after is not None)
            present = after or present
        if present is override:
            return Decision(answers, needs_fresh=not all(answers))
        return Decision(answers, present)
