"""Logs: one JSON object per record, text for terminals, and no secrets."""

import contextvars
import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis.strategies import dictionaries, floats, integers, lists, none, recursive, text

from altershield.process import logs
from kube_base.errors import UsageError

JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzeXN0ZW0ifQ.c2lnbmF0dXJl"
KEY = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIIGL\n-----END EC PRIVATE KEY-----\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fail(text: str) -> None:
    raise ValueError(text)


@pytest.fixture(autouse=True)
def _restore_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    library = logging.getLogger("kubernetes_asyncio")
    yield
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    library.setLevel(logging.NOTSET)


def output(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, level: str = "info") -> tuple[logging.Logger, Any]:
    monkeypatch.setattr(sys, "stderr", stream)
    logs.configure(level)
    return logging.getLogger("altershield.test"), lambda: stream.getvalue().splitlines()


@pytest.fixture
def json_log(monkeypatch: pytest.MonkeyPatch) -> tuple[logging.Logger, Any]:
    return output(io.StringIO(), monkeypatch)


@pytest.fixture
def text_log(monkeypatch: pytest.MonkeyPatch) -> tuple[logging.Logger, Any]:
    return output(Terminal(), monkeypatch)


def test_line_of_a_reconcile_has_its_id(json_log: tuple[logging.Logger, Any]) -> None:
    logger, lines = json_log

    def reconcile() -> None:
        logs.RECONCILE.set("17")
        logger.info("during", extra={"namespace": "shop"})

    contextvars.copy_context().run(reconcile)
    logger.info("after")
    during, after = map(json.loads, lines())
    assert (during["reconcile"], during["namespace"]) == ("17", "shop")
    assert list(after) == ["time", "level", "logger", "message"]


def test_record_is_one_line_of_json_with_its_fields(json_log: tuple[logging.Logger, Any]) -> None:
    logger, lines = json_log
    logger.info("released\nagain %s", "now", extra={"namespace": "shop", "pods": 5, "versions": ["a", "b"]})
    (line,) = lines()
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {
        "level": "info",
        "logger": "altershield.test",
        "message": "released\nagain now",
        "namespace": "shop",
        "pods": 5,
        "versions": ["a", "b"],
    }


def test_exception_is_two_fields_of_the_same_line(json_log: tuple[logging.Logger, Any]) -> None:
    logger, lines = json_log
    try:
        fail("broken")
    except ValueError:
        logger.exception("a gate failed")
    (line,) = lines()
    found = json.loads(line)
    assert found["error"] == "ValueError: broken"
    assert found["stack"].startswith("Traceback")
    assert 'fail("broken")' in found["stack"]


def test_text_log_has_the_stack_indented_below_the_message(text_log: tuple[logging.Logger, Any]) -> None:
    logger, lines = text_log
    try:
        fail("broken")
    except ValueError:
        logger.warning("odd", exc_info=True, extra={"namespace": "shop", "pods": ["a"]})
    first, *rest = lines()
    assert first.endswith('WARNING altershield.test: odd namespace=shop pods=["a"] error=ValueError: broken')
    assert rest
    assert all(line.startswith("    ") for line in rest)


def test_text_log_contains_no_control_characters(text_log: tuple[logging.Logger, Any]) -> None:
    logger, lines = text_log
    logger.info("clear\x1b[2J", extra={"name_": "a\nERROR b\u2028c"})
    (line,) = lines()
    assert line.endswith("clear\\x1b[2J name_=a\\x0aERROR b\\x2028c")


@pytest.mark.parametrize("terminal", [False, True])
@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abc.def-123~xyz/==", "abc.def-123"),
        ("authorization: basic YWRtaW46cGFzc3dvcmQ=", "YWRtaW46cGFzc3dvcmQ"),
        (f"token {JWT} refused", "eyJ"),
        (f"the key is {KEY} so", "MHcCAQEEIIGL"),
    ],
)
def test_secrets_are_redacted_in_messages_fields_and_exceptions(
    terminal: bool, text: str, secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger, lines = output(Terminal() if terminal else io.StringIO(), monkeypatch)
    logger.info(text)
    logger.info("field", extra={"value": text, "nested": {"deep": [text]}})
    try:
        fail(text)
    except ValueError:
        logger.exception("error")
    everything = "\n".join(lines())
    assert secret not in everything
    assert everything.count("REDACTED") >= 4
    if not terminal:
        assert [json.loads(line)["level"] for line in lines()] == ["info", "info", "error"]


def test_level_is_applied_and_an_unknown_level_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    logger, lines = output(io.StringIO(), monkeypatch, level="WARNING")
    logger.info("quiet")
    logger.warning("loud")
    assert [json.loads(line)["message"] for line in lines()] == ["loud"]
    with pytest.raises(UsageError, match="'chatty' is not one of debug, info, warning, error"):
        logs.configure("chatty")


def test_extra_fields_cannot_replace_the_fields_of_the_record(json_log: tuple[logging.Logger, Any]) -> None:
    logger, lines = json_log
    logger.info("text", extra={"level": "critical", "time": "never", "logger": "other"})
    found = json.loads(lines()[0])
    assert (found["level"], found["logger"]) == ("info", "altershield.test")
    assert found["time"] != "never"
    assert list(found)[:4] == ["time", "level", "logger", "message"]


def test_long_field_is_cut(json_log: tuple[logging.Logger, Any]) -> None:
    logger, lines = json_log
    logger.info("m" * 1_000_000, extra={"value": "v" * 1_000_000})
    assert len(lines()[0]) < 40_000


VALUES = recursive(
    none() | integers() | floats() | text(),
    lambda inner: lists(inner, max_size=3) | dictionaries(text() | integers(), inner, max_size=3),
    max_leaves=8,
)


@given(message=text(), value=VALUES)
def test_any_message_and_value_is_one_line_of_json(message: str, value: object) -> None:
    record = logging.makeLogRecord({"name": "n", "levelname": "INFO", "msg": message, "value": value})
    line = logs._Json().format(record)
    assert len(line.encode(errors="surrogatepass").splitlines()) == 1
    assert "message" in json.loads(line)
    shown = logs._Text().format(record)
    assert len(shown.splitlines()) == 1
