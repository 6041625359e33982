"""The file with the receivers. Its URLs and tokens are secrets."""

import asyncio
import contextlib
import json
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_base.errors import UsageError
from reconciler.outbound.urls import parse as parsed
from reconciler.receivers import file as module
from reconciler.receivers.file import Receivers, ReceiversFile, allowed, chosen, parse, read, unknown_receivers
from reconciler.receivers.vocabulary import Event
from tests.support.polling import until
from tests.unit.reconciler.notifications.receiving import happened, receiver

SECRET = "hooks.example.com/services/T0/B0/secret-part"
FULL = f"""\
cluster: prod
receivers:
  - name: team
    type: slack
    url: https://{SECRET}
    events: [suspended, approval-needed]
    namespaces: [shop]
    template: "{{{{kind}}}} {{{{ workload }}}}: {{{{message}}}}"
  - {{name: tools, type: cloudevents, url: "http://tools.tools.svc:8080/events", token: secret-token}}
  - {{name: alerts, type: alertmanager, url: "http://10.1.2.3:9093"}}
"""


def test_file_with_all_fields_is_read() -> None:
    found = parse(FULL.encode())
    assert found.cluster == "prod"
    assert [each.name for each in found.receivers] == ["team", "tools", "alerts"]
    assert found.receivers[0].events == ("suspended", "approval-needed")
    assert parse(msgspec.json.encode(found)) == found
    assert parse(b"") == parse(b"receivers: []") == Receivers()


def test_client_may_call_the_hosts_in_the_file_and_no_others() -> None:
    hosts = allowed(parse(FULL.encode()).receivers)
    for url in ("https://hooks.example.com/x", "http://tools.tools.svc/", "http://10.1.2.3/"):
        assert hosts.allows(parsed(url))
    for url in ("https://x.hooks.example.com/", "http://other.tools.svc/", "http://10.1.2.4/", "http://127.0.0.1/"):
        assert not hosts.allows(parsed(url))
    assert not hosts.allows_loopback(parsed("http://127.0.0.1/"))
    assert allowed([receiver(url="http://127.0.0.1:1/")]).allows_loopback(parsed("http://127.0.0.1/"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (f"receivers:\n  - name: {{ https://{SECRET}", "it is not YAML (line 2)"),
        ("receivers: 1", "Expected `array`, got `int` - at `$.receivers`"),
        ("receivers: [{name: a, type: slack}]", "missing required field `url`"),
        ("receivers: [{name: a, type: slack, url: 1}]", "Expected `str`, got `int`"),
        ("receivers: [{name: a, type: slack, ulr: x}]", "unknown field `ulr`"),
        (
            f"receivers: [{{name: a, type: 'https://{SECRET}', url: 'https://x.y'}}]",
            "receiver 1 (a): its type is not one",
        ),
        (f"receivers: [{{name: 'https://{SECRET}', type: slack, url: 'https://x.y'}}]", "receiver 1: its name has to"),
        (f"receivers: [{{name: a, type: slack, url: 'https://u:p@{SECRET}'}}]", "receiver 1 (a): its url is not valid"),
        (f"receivers: [{{name: a, type: slack, url: 'ftp://{SECRET}'}}]", "receiver 1 (a): its url is not valid"),
        ("receivers: [{name: a, type: slack, url: 'https://x.y', events: [all]}]", "its events are not all among"),
        ("receivers: [{name: a, type: slack, url: 'https://x.y', events: [test]}]", "its events are not all among"),
        (
            "receivers: [{name: a, type: slack, url: 'https://x.y', template: '{{url}}'}]",
            "its template has {{url}}, which is",
        ),
        (
            "receivers: [{name: a, type: slack, url: 'https://x.y', template: '{{ a b }}'}]",
            "its template has {{ a b }}, which",
        ),
        ("receivers: [{name: a, type: slack, url: 'https://x.y', template: '{{message}} {{'}]", "its template has {{,"),
        (
            f"receivers: [{{name: a, type: slack, url: 'https://x.y', template: '{{{{{SECRET}'}}]",
            "its template has {{hooks",
        ),
        (
            "receivers: [{name: a, type: slack, url: 'https://x.y', template: '{{x/secret'}]",
            "its template has {{x, which",
        ),
        ("receivers: [{name: a, type: slack, url: 'https://x.y', template: 'x{{Message}}'}]", "there are: event, name"),
        ("receivers: [{name: a, type: slack, url: 'https://x.y', selection: all}]", "(a): its selection is not one of"),
        ('receivers: [{name: a, type: slack, url: "https://x.y", token: "a\\nb"}]', "its token has a character"),
        (
            "receivers: [{name: a, type: slack, url: 'https://x.y'}, {name: a, type: slack, url: 'https://x.z'}]",
            "receiver 1 (a): another receiver has its name",
        ),
        (
            "receivers: [{name: a, type: pagerduty, url: 'https://x.y', routingKey: secret}]",
            "(a): its routingKey is not the 32 letters",
        ),
        ("receivers: [{name: a, type: pagerduty, url: 'https://x.y'}]", "(a): its routingKey is not the 32 letters"),
        (
            f"receivers: [{{name: a, type: teams, url: 'https://x.y', routingKey: '{'0' * 32}'}}]",
            "so it has no routing",
        ),
        (
            "receivers: [{name: a, type: slack, url: 'https://x.y', title: x}]",
            "(a): its type is slack, so it has no ti",
        ),
        ("receivers: [{name: a, type: teams, url: 'https://x.y', title: '{{x}}'}]", "its title has {{x}}, which is"),
        (
            "receivers: [{name: a, type: alertmanager, url: 'https://x.y', events: [succeeded]}]",
            "(a): its events have succeeded, but a receiver of the type alertmanager is for what has to end",
        ),
        ("[" * 1000, "it is nested too deeply"),
        ("!!python/object/apply:os.system [ls]", "it is not YAML"),
        ("\x00", "it is not YAML"),
        ("- &a [*a, *a]", "Expected `object`"),
    ],
)
def test_invalid_file_is_refused_with_a_reason_that_contains_no_secret(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        parse(text.encode())
    assert reason in str(caught.value)
    assert "secret" not in str(caught.value)
    file = tmp_path / "receivers.yaml"
    file.write_text(text)
    with pytest.raises(UsageError, match="are invalid") as refused:
        read(file)
    assert "secret" not in str(refused.value)


def test_missing_and_oversized_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read(tmp_path / "none")
    (tmp_path / "big").write_bytes(b"#" * (module.MAX_FILE + 1))
    with pytest.raises(UsageError, match="more than 262144 bytes"):
        read(tmp_path / "big")
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(UsageError, match="not UTF-8"):
        read(tmp_path / "latin")


@given(st.binary() | st.text().map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse(data)


def test_representation_of_a_receiver_has_no_secret() -> None:
    assert "secret" not in repr(parse(FULL.encode()))


@pytest.mark.parametrize(
    ("fields", "event", "more", "wanted"),
    [
        ({}, Event.UNGATED, {}, True),
        ({"events": ("suspended",)}, Event.UNGATED, {}, False),
        ({"events": ("suspended",)}, Event.SUSPENDED, {}, True),
        ({"namespaces": ("other",)}, Event.SUSPENDED, {}, False),
        ({"namespaces": ("shop",)}, Event.SUSPENDED, {}, True),
        ({"namespaces": ("other",), "events": ("ungated",)}, Event.TEST, {}, True),
        ({}, Event.SUSPENDED, {"resolved": True}, False),
        ({"type_": "alertmanager"}, Event.SUSPENDED, {"resolved": True}, True),
    ],
)
def test_receiver_is_told_of_the_events_and_namespaces_that_it_names(
    fields: dict[str, Any], event: Event, more: dict[str, Any], wanted: bool
) -> None:
    happening = happened(event, **more)
    assert receiver(**fields).wants(event, happening.namespace, resolved=happening.resolved) is wanted


# by policy


@pytest.mark.parametrize(
    ("notify", "names"),
    [
        (None, {"team", "audit"}),
        (("shop",), {"shop", "audit"}),
        (("shop", "gone"), {"shop", "audit"}),
        (("team", "shop"), {"team", "shop", "audit"}),
        ((), {"audit"}),
        (("gone",), {"team", "audit"}),
        (("theirs",), {"team", "audit"}),
    ],
)
def test_receivers_are_those_that_the_policy_names_and_those_that_it_cannot_exclude(
    notify: tuple[str, ...] | None, names: set[str]
) -> None:
    theirs = {"namespaces": ("other",)}
    found = [
        receiver(name="team"),
        receiver(name="shop", selection="named"),
        receiver(name="audit", selection="always"),
        receiver(name="theirs", **theirs),
        receiver(name="their-audit", selection="always", **theirs),
    ]
    assert chosen(found, notify, "shop") == names


def sentence(names: tuple[str, ...], namespace: str = "shop", file: str = FULL) -> str:
    stub = SimpleNamespace(current=parse(file.encode()))
    return unknown_receivers(stub, "system", names, namespace)  # type: ignore[arg-type]


def test_names_without_a_receiver_are_listed_with_those_that_exist_for_the_namespace() -> None:
    assert sentence(()) == sentence(("team", "alerts")) == ""
    assert sentence(("x", "team", "y")) == (
        "the administrator's file has no receiver x, y for this namespace; there are: alerts, team, tools"
    )
    assert sentence(("team",), "other") == (
        "the administrator's file has no receiver team for this namespace; there are: alerts, tools"
    )
    assert sentence(("team",), "system") == ""
    assert sentence(("x",), file="receivers: []").endswith("; there is none")


def test_sentence_about_names_without_a_receiver_is_bounded() -> None:
    many = [{"name": f"r{number:02}" + "x" * 60, "type": "slack", "url": "https://x.y"} for number in range(16)]
    text = sentence(tuple(f"n{number:02}" + "x" * 60 for number in range(16)), file=json.dumps({"receivers": many}))
    assert text.count("and 11 more") == 2
    assert len(text) < 900


def test_without_a_file_nobody_is_told() -> None:
    assert unknown_receivers(None, "system", (), "shop") == ""
    assert "--notifications-file" in unknown_receivers(None, "system", ("team",), "shop")


async def test_file_is_read_again_when_it_changes_and_an_invalid_one_has_no_effect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "_PERIOD", 0.01)
    path = tmp_path / "receivers.yaml"
    path.write_text(FULL)
    file, changes = ReceiversFile(path), []
    file.add_handler(lambda: changes.append(file.current))
    task = asyncio.create_task(file.follow())
    path.write_text(f"receivers: https://{SECRET}")
    await until(lambda: "the last receivers stay in use" in caplog.text)
    assert file.current == parse(FULL.encode())
    path.unlink()
    await asyncio.sleep(0.05)
    path.write_text("receivers: []")
    await until(lambda: changes)
    assert file.current == Receivers()
    task.cancel()
    assert "secret" not in caplog.text


async def test_change_that_was_being_read_when_the_lease_was_lost_is_found_in_the_next_term(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PERIOD", 0.01)
    path = tmp_path / "receivers.yaml"
    path.write_text(FULL)
    file, reading, cancelled = ReceiversFile(path), threading.Event(), threading.Event()
    path.write_text("receivers: []")

    def read_slowly(path: Path) -> Receivers:
        reading.set()
        cancelled.wait()
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(module, "read", read_slowly)
        task = asyncio.create_task(file.follow())
        await asyncio.to_thread(reading.wait)
        task.cancel()
        await asyncio.wait({task})
    cancelled.set()
    task = asyncio.create_task(file.follow())
    await until(lambda: file.current == Receivers())
    task.cancel()


@pytest.mark.parametrize("event", Event)
def test_receiver_gets_success_only_if_it_names_it(event: Event) -> None:
    assert receiver().wants(event, "shop", resolved=False) is (event is not Event.SUCCEEDED)
    assert receiver(events=("succeeded",)).wants(event, "shop", resolved=False) is (
        event in (Event.SUCCEEDED, Event.TEST)
    )
