"""Signed requests, and the file with the token."""

import logging
import os
from pathlib import Path

import pytest

from kube_base.errors import ReportedError, UsageError
from reconciler.server.messages import Order
from reconciler.server.server_errors import RejectedError, UnavailableError
from reconciler.server.signature import body_content, query_content, sign
from reconciler.server.token_file import TokenFile
from tests.unit.reconciler.server.fake_server import (
    NOW,
    ORDER,
    START,
    WORKLOAD,
    FakeServer,
    calling,
    failure,
    raw,
    success,
)

TIMESTAMP = round(NOW * 1000)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


def replace(path: Path, token: str | bytes | None) -> None:
    """Replace the file at once, as the kubelet does. None: remove it."""
    if token is None:
        path.unlink()
    else:
        new = path.with_suffix(".new")
        new.write_bytes(token.encode() if isinstance(token, str) else token)
        os.replace(new, path)


def signed_with(server: FakeServer) -> str:
    """The token with which the last request is signed."""
    request = server.requests[-1]
    content = body_content(request.body) if request.method == "POST" else query_content({"platform": "kubernetes"})
    signature = request.headers["X-AlterShield-Sign"]
    return next(token for token in ("", "first", "second") if sign(TIMESTAMP, content, token) == signature)


async def test_requests_are_signed_over_the_bytes_that_are_sent(path: Path) -> None:
    async with calling(path) as (server, client):
        server.answers = [success({})]
        await client.create_order(Order(id="o", title="灰度发布\ncafé", creator="é", workload=WORKLOAD))
        assert signed_with(server) == "first"
        assert server.requests[0].fields["changeTitle"] == "灰度发布\ncafé"
        await client.enabled()
        assert signed_with(server) == "first"
        for request in server.requests:
            assert request.headers["X-AlterShield-Platform"] == "kubernetes"
            assert request.headers["X-AlterShield-Timestamp"] == "1700000000000"
            assert b"\n" not in request.body


async def test_without_a_token_file_requests_have_the_headers_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A server that checks no signatures requires the headers nevertheless."""
    async with calling() as (server, client):
        await client.create_order(ORDER)
        await client.create_order(ORDER)
        assert signed_with(server) == ""
    assert [record.levelname for record in caplog.records if "empty token" in record.message] == ["WARNING"]


async def test_refused_request_is_sent_again_once_if_the_token_has_changed(path: Path) -> None:
    async with calling(path) as (server, client):
        await client.create_order(ORDER)
        replace(path, "second")
        server.answers = [failure("102"), success({"nodeId": "n1"})]
        assert await client.start_batch(START) == "n1"
        assert signed_with(server) == "second"
        assert len(server.requests) == 3


async def test_refused_request_is_not_sent_again_if_the_token_is_the_same(path: Path) -> None:
    async with calling(path) as (server, client):
        server.answers = [failure("102")]
        with pytest.raises(RejectedError):
            await client.start_batch(START)
        assert len(server.requests) == 1


async def test_changed_token_is_used_after_a_second(path: Path) -> None:
    clock = Clock()
    token = TokenFile(path, clock)
    assert await token.current() == "first"
    replace(path, "second")
    clock.now = 0.9
    assert await token.current() == "first"
    clock.now = 1.0
    assert await token.current() == "second"


async def test_last_token_is_used_while_the_file_cannot_be_read(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    token = TokenFile(path, clock)
    await token.current()
    replace(path, None)
    for clock.now in (1.0, 2.0, 3.0):
        assert await token.current() == "first"
    assert len(caplog.records) == 1
    replace(path, "second")
    clock.now = 4.0
    assert await token.current() == "second"


@pytest.mark.parametrize("content", [None, b"", b"  \n", b"\xff"])
async def test_without_a_first_token_nothing_is_sent(path: Path, content: bytes | None) -> None:
    replace(path, content)
    with pytest.raises(UsageError):
        await TokenFile(path).current()
    async with calling(path) as (server, client):
        with pytest.raises(UnavailableError, match="token") as caught:
            await client.create_order(ORDER)
        assert not caught.value.delivered
        assert server.requests == []


async def test_no_error_and_no_log_line_contains_the_token(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    replace(path, "hunter2-hunter2")
    messages = []
    async with calling(path) as (server, client):
        for answer in (
            failure("101"),
            failure("102"),
            failure("103"),
            failure("901"),
            raw(status=400),
            raw(status=502),
        ):
            server.answers = [answer]
            with pytest.raises(ReportedError) as caught:
                await client.create_order(ORDER)
            messages += [str(caught.value), repr(caught.value)]
    assert "hunter2" not in "".join([*messages, caplog.text])
