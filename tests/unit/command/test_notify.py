"""`altershield notify test`, with real HTTP servers."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from command import main
from tests.support.processes import Done, call
from tests.unit.reconciler.notifications.receiving import Inbox


@pytest.fixture
async def inbox() -> AsyncIterator[Inbox]:
    async with Inbox().serving() as made:
        yield made


async def run(file: Path, *more: str, capture: pytest.CaptureFixture[str]) -> Done:
    """The command runs its own event loop, so it needs a thread."""
    return await asyncio.to_thread(
        call, main, "altershield", "notify", "test", "--file", str(file), *more, capture=capture
    )


def receivers(file: Path, *inboxes: Inbox) -> Path:
    types = ("slack", "cloudevents", "alertmanager")
    made = [
        {"name": type_, "type": type_, "url": f"{each.url}/secret", "events": ["ungated"]}
        for type_, each in zip(types, inboxes, strict=False)
    ]
    file.write_text(json.dumps({"receivers": made}))
    return file


async def test_each_receiver_gets_one_test_notification(
    inbox: Inbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = await run(receivers(tmp_path / "r.yaml", inbox, inbox, inbox), capture=capsys)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "slack: sent\ncloudevents: sent\nalertmanager: sent\n"
    assert sorted(path for path, _, _ in inbox.requests) == ["/secret", "/secret", "/secret/api/v2/alerts"]
    texts = [body["text"] for _, _, body in inbox.requests if "text" in body]
    assert all("is a test of AlterShield's notifications" in text for text in texts)


async def test_one_receiver_may_be_chosen(inbox: Inbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = receivers(tmp_path / "r.yaml", inbox, inbox, inbox)
    assert (await run(file, "--receiver", "slack", capture=capsys)).stdout == "slack: sent\n"
    assert len(inbox.requests) == 1
    done = await run(file, "--receiver", "other", capture=capsys)
    assert done.returncode == 2
    assert "has no receiver 'other'" in done.stderr


async def test_receiver_that_refuses_is_named_and_the_exit_code_is_1(
    inbox: Inbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with Inbox().serving() as broken:
        broken.statuses = [403]
        done = await run(receivers(tmp_path / "r.yaml", broken, inbox), capture=capsys)
    assert done.returncode == 1
    assert done.stdout == "slack: the receiver answers HTTP 403\ncloudevents: sent\n"
    assert "1 of 2 receivers did not take the notification" in done.stderr
    assert "secret" not in done.stdout + done.stderr


async def test_unreachable_receiver_is_named_without_the_path_of_its_url(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gone = Inbox()
    gone.port = 9
    done = await run(receivers(tmp_path / "r.yaml", gone), capture=capsys)
    assert done.returncode == 1
    assert "slack: the request cannot be sent to 127.0.0.1:9" in done.stdout
    assert "secret" not in done.stdout + done.stderr


@pytest.mark.parametrize(("text", "reason"), [("receivers: []", "has no receivers"), ("receivers: 1", "are invalid")])
async def test_file_without_receivers_and_an_invalid_one_are_refused(
    text: str, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(text)
    done = await run(file, capture=capsys)
    assert done.returncode == 2
    assert reason in done.stderr


async def test_test_of_pagerduty_leaves_no_open_alert(
    inbox: Inbox, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "r.yaml"
    file.write_text(
        json.dumps({"receivers": [{"name": "p", "type": "pagerduty", "url": inbox.url, "routingKey": "0" * 32}]})
    )
    assert (await run(file, capture=capsys)).stdout == "p: sent\n"
    begun, ended = [body for _, _, body in inbox.requests]
    assert (begun["event_action"], ended["event_action"]) == ("trigger", "resolve")
    assert begun["dedup_key"] == ended["dedup_key"]
