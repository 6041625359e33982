"""A release in steps ends the same if each write of the reconciler to the workload, the ChangeWorkload and the pods is
refused once, or is carried out without an answer. A refused write of the hold is a condition with its cause, and no
failure of the version."""

import asyncio
import collections
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest
from aiohttp import web

from tests.fault.gatekeeper import admitting
from tests.fault.reconciler_cluster import Cluster, GoOn, running_cluster
from tests.fault.step_stories import (
    EVENTS_OF,
    STORIES,
    Chapter,
    Held,
    excess,
    let_go,
    prepared,
    reasons,
    rolled_back,
    scaled,
)
from tests.support import workloads

Answer = Callable[[web.Request, GoOn], Awaitable[web.StreamResponse]]

CAUSE = "the reason why it is refused"


def refusing(code: int, reason: str) -> Answer:
    """422 has the causes that a ValidatingAdmissionPolicy gives; those of another object name fields."""

    async def refused(request: web.Request, go_on: GoOn) -> web.StreamResponse:
        body = {"kind": "Status", "apiVersion": "v1", "code": code, "reason": reason, "message": CAUSE}
        return web.json_response({**body, "details": {"causes": [{"message": CAUSE}]}}, status=code)

    return refused


async def unanswered(request: web.Request, go_on: GoOn) -> web.StreamResponse:
    """The write takes place, and the connection is lost before the answer."""
    await go_on()
    assert request.transport is not None
    request.transport.abort()
    raise asyncio.CancelledError


ANSWERS: dict[str, Answer] = {
    "403": refusing(403, "Forbidden"),
    "409": refusing(409, "Conflict"),
    "422": refusing(422, "Invalid"),
    "500": refusing(500, "InternalError"),
    "unanswered": unanswered,
}
OVER_AT_ONCE = {"409", "unanswered"}
"""The answers after which another attempt follows at once, so that no condition says so."""


class EachWriteOnce:
    """A fault that gives this answer to the first attempt of each write, and lets the next one through."""

    def __init__(self, kind: str, answer: Answer, but: bytes = b"") -> None:
        """`but`: writes with this text are let through; empty: none are."""
        self._but = but
        self._objects = {workloads.BY_NAME[kind].resource.plural, "changeworkloads", "pods"}
        self._answer = answer
        self._attempts: collections.Counter[tuple[str, str]] = collections.Counter()
        self.of_holds = 0
        """How many writes of a hold, and evictions, had this answer."""
        self.is_said = False
        """Whether the cause was written into a condition."""

    async def __call__(self, request: web.Request, go_on: GoOn) -> web.StreamResponse:
        parts = {*request.path.split("/")}
        if request.method in ("GET", "HEAD") or "dryRun" in request.query or not self._objects & parts:
            return await go_on()
        body = await request.read()
        if self._but and self._but in body:
            return await go_on()
        self.is_said = self.is_said or (b'"WriteRefused"' in body and CAUSE.encode() in body)
        write = request.method, request.path
        self._attempts[write] += 1
        if self._attempts[write] % 2 == 0:
            return await go_on()
        self.of_holds += b"defense.antgroup.com~1rollout" in body or "eviction" in parts
        return await self._answer(request, go_on)


async def play(cluster: Cluster, held: Held, last: Chapter) -> None:
    """Tell the last chapter. Besides its Events there may be one about refused writes."""
    before = await reasons(cluster)
    async with cluster.reconciler(start_timeout=30.0):
        await last(held)

        async def met() -> bool:
            new = await reasons(cluster) - before
            assert new.keys() - EVENTS_OF[last].keys() <= {"StepHeld"}
            return all(new[reason] >= number for reason, number in EVENTS_OF[last].items())

        await cluster.until(met, f"the Events {EVENTS_OF[last]}")


@pytest.mark.parametrize(
    ("kind", "story"),
    [
        pytest.param(kind, story, id=f"{kind}-{story[-1].__name__}", marks=pytest.mark.xdist_group(f"crashes-{n % 2}"))
        for n, (kind, story) in enumerate(STORIES)
    ],
)
async def test_release_in_steps_ends_correctly_if_each_write_is_refused_once(
    tmp_path: Path, kind: str, story: Sequence[Chapter]
) -> None:
    *before, last = story
    async with running_cluster(tmp_path) as cluster, admitting(cluster, tmp_path):
        storage = await prepared(cluster, kind, before)
        for name, answer in ANSWERS.items():
            await cluster.restore(storage)
            # whether the field managers return after a rollback is tried once, and an Event says if they do not
            is_tried_once = last is rolled_back and name not in OVER_AT_ONCE
            fault = EachWriteOnce(kind, answer, b"managedFields" if is_tried_once else b"")
            cluster.set_fault(fault)
            try:
                await play(cluster, Held(cluster, kind), last)
                assert not excess(cluster.store, cluster.namespace, kind) or last is scaled
                expected = bool(fault.of_holds and name not in OVER_AT_ONCE)
                # while the setting `rollout` is off, another controller ends the hold too: its log says why it cannot
                assert fault.is_said == expected or (last is let_go and not fault.is_said)
            except Exception as error:
                error.add_note(f"The answer was {name}; {fault.of_holds} writes of a hold had it.")
                raise
