"""What the answers of an AlterShield server mean at the deadline of a check, when a poll says `fail`."""

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock

import pytest

from altershield.api.change_pod import ChangePodStatus
from altershield.api.check_specs import CheckSpec, Phase, ServerCheck
from reconciler.checks.altershield_server import AlterShieldServer
from reconciler.checks.check import Fail, Pending, PollAnswer, Subject
from reconciler.server.answers import Polled, ServerVerdict
from reconciler.server.server_errors import NotAllowedError, RejectedError
from tests.unit.altershield.releases.builders import NOW, change_pod, release


class Client:
    """A server that says `fail` when it is polled, and that answers `end` when a batch is finished."""

    def __init__(self, end: bool | Exception) -> None:
        self.end = end
        self.finished = 0

    async def poll(self, *_: object) -> Polled:
        return Polled(True, ServerVerdict.FAIL, "")

    async def finish_batch(self, _: object) -> bool:
        self.finished += 1
        if isinstance(self.end, Exception):
            raise self.end
        return self.end


async def polled(phase: Phase, client: Client, *, last: bool) -> PollAnswer:
    caches = SimpleNamespace(releases=SimpleNamespace(get=lambda *_: release()))
    server = AlterShieldServer(cast(Any, client), cast(Any, caches), lambda: NOW, AsyncMock())
    batch = change_pod(1, "a", status=ChangePodStatus(change_pod_id="node-1"))
    spec = CheckSpec(name="server", server=ServerCheck())
    return await server.poll(Subject(batch, release(), spec, phase, NOW, NOW + 120), "node-1", last=last)


@pytest.mark.parametrize("phase", Phase)
async def test_failure_is_no_result_before_the_deadline(phase: Phase) -> None:
    client = Client(True)
    assert await polled(phase, client, last=False) == Pending()
    assert client.finished == 0


@pytest.mark.parametrize("phase", Phase)
async def test_failure_counts_at_the_deadline_if_the_check_is_over(phase: Phase) -> None:
    assert isinstance(await polled(phase, Client(True), last=True), Fail)


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(
    "end",
    [
        False,
        NotAllowedError("running", state="PRE_AOP", text=""),
        NotAllowedError("the server does not know the node", state="", text=""),
        RejectedError("skipped", code="101", text=""),
        RejectedError("wrong token", code="102", text=""),
    ],
    ids=["check running", "first check running", "unknown node", "skipped", "wrong token"],
)
async def test_failure_is_no_result_unless_the_server_shows_that_the_check_is_over(
    phase: Phase, end: bool | Exception
) -> None:
    assert await polled(phase, Client(end), last=True) == Pending()
