"""ReleaseWindows: what the API server refuses, and what the reconciler writes into their status."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from altershield.api.labels import CALENDAR
from altershield.api.names import SYSTEM_NAMESPACE
from altershield.api.resources import API_VERSION, RELEASE_WINDOWS
from tests.support.kubectl import Json, Kubectl
from tests.support.polling import eventually

WEEKEND = {"weekly": {"days": ["Sat", "Sun"]}}
HOLIDAYS = {"calendar": {"configMap": "holidays", "key": "cn.ics"}}
FILE = """\
BEGIN:VCALENDAR
BEGIN:VEVENT
UID:a
DTSTART;VALUE=DATE:20260101
RRULE:FREQ=DAILY
END:VEVENT
END:VCALENDAR
"""


def manifest(name: str, *schedules: Json, **spec: Any) -> str:
    """A Deny with these schedules."""
    made = {"type": "Deny", "schedules": list(schedules), **spec}
    return json.dumps(
        {"apiVersion": API_VERSION, "kind": RELEASE_WINDOWS.kind, "metadata": {"name": name}, "spec": made}
    )


def status(kubectl: Kubectl, name: str, reason: str) -> Json:
    """The status, when the reconciler has written it for the present spec with this reason of Accepted."""

    def written() -> Json | None:
        found = kubectl.json("releasewindow", name)
        own = dict(found.get("status", {}))
        reasons = [each["reason"] for each in own.get("conditions", ()) if each["type"] == "Accepted"]
        return own if own.get("observedGeneration") == found["metadata"]["generation"] and [reason] == reasons else None

    return dict(eventually(written, f"the window {name} to be {reason}") or {})


def message(found: Json) -> str:
    (text,) = (each["message"] for each in found["conditions"] if each["type"] == "Accepted")
    return str(text)


@pytest.fixture
def system(kubectl: Kubectl) -> Iterator[Kubectl]:
    """kubectl in AlterShield's namespace."""
    found = Kubectl(kubectl.kubeconfig, SYSTEM_NAMESPACE)
    yield found
    found("delete", "releasewindow", "--all")
    found("delete", "configmap", "holidays", "--ignore-not-found")


def publish(system: Kubectl, text: str, *, labelled: bool = True) -> None:
    metadata = {"name": "holidays", "labels": {CALENDAR: ""} if labelled else {}}
    system.apply(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"cn.ics": text}}))


def test_window_gets_its_times_and_keeps_them_after_a_wrong_edit(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("weekend", WEEKEND, timeZone="Asia/Shanghai"))
    found = status(kubectl, "weekend", "Valid")
    assert found["intervals"]
    assert {(each["from"][10:], each["to"][10:]) for each in found["intervals"]} == {("T16:00:00Z", "T16:00:00Z")}
    assert found["nextTransitionTime"] in {edge for each in found["intervals"] for edge in each.values()}
    assert found["accepted"]["timeZone"] == "Asia/Shanghai"
    kubectl.apply(manifest("weekend", {"cron": {"schedule": "61 0 * * *", "durationSeconds": 60}}))
    wrong = status(kubectl, "weekend", "ScheduleInvalid")
    assert message(wrong).endswith("Bad minute; correct it; the spec that was accepted last stays in force")
    assert (wrong["intervals"], wrong["acceptedGeneration"]) == (found["intervals"], 1)
    eventually(
        lambda: any(each["reason"] == "WindowRejected" for each in kubectl.json("events")["items"]),
        "the Event WindowRejected",
    )
    columns = kubectl("get", "releasewindow", "weekend").splitlines()
    assert columns[0].split() == ["NAME", "TYPE", "OPEN", "MODE", "ACCEPTED", "AGE"]
    assert columns[1].split()[1:5] == ["Deny", str(found["open"]).lower(), "enforce", "False"]


def test_calendar_is_read_where_it_has_the_label(system: Kubectl) -> None:
    publish(system, FILE, labelled=False)
    system.apply(manifest("holidays", HOLIDAYS, namespaceSelector={}))
    assert CALENDAR in message(status(system, "holidays", "CalendarNotFound"))
    publish(system, FILE)
    found = status(system, "holidays", "Valid")
    assert (found["open"], len(found["intervals"])) == (False, 1)
    publish(system, FILE.replace("DAILY", "SECONDLY"))
    wrong = status(system, "holidays", "CalendarInvalid")
    assert message(wrong).startswith("spec.schedules[0]: event 1 (UID a): RRULE has FREQ=SECONDLY")
    assert wrong["intervals"] == found["intervals"]


def test_window_of_a_tenant_has_neither_calendars_nor_other_namespaces(kubectl: Kubectl) -> None:
    kubectl.apply(manifest("holidays", HOLIDAYS))
    assert SYSTEM_NAMESPACE in message(status(kubectl, "holidays", "CalendarNotFound"))
    kubectl.apply(manifest("all", WEEKEND, namespaceSelector={}))
    assert SYSTEM_NAMESPACE in message(status(kubectl, "all", "NamespaceSelectorNotAllowed"))


@pytest.mark.parametrize(
    "zone", ["UTC", "Asia/Shanghai", "US/Eastern", "Etc/GMT+8", "America/Argentina/Buenos_Aires", "CET"]
)
def test_api_server_accepts_names_of_time_zones(kubectl: Kubectl, zone: str) -> None:
    code, found = kubectl.create(RELEASE_WINDOWS, manifest("own", WEEKEND, timeZone=zone), dry_run=True)
    assert code == 201, found


RULE = "timeZone is a name of the IANA time zone database, for example Europe/Berlin"


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        ("Mars/Base", f'Invalid value: "string": unknown time zone Mars/Base evaluating rule: {RULE}'),
        ("europe/Berlin", 'Invalid value: "europe/Berlin": spec.timeZone in body should match'),
        ("", 'Invalid value: "": spec.timeZone in body should be at least 1 chars long'),
        ("Local", f'Invalid value: "Local": {RULE}'),
        ("+01:00", 'Invalid value: "+01:00": spec.timeZone in body should match'),
        ("-03:30", 'Invalid value: "-03:30": spec.timeZone in body should match'),
        ("../etc/passwd", f'Invalid value: "string": time: invalid location name evaluating rule: {RULE}'),
        ("A" * 65, "Too long: may not be more than 64 bytes"),
    ],
)
def test_api_server_refuses_what_is_no_time_zone(kubectl: Kubectl, zone: str, message: str) -> None:
    code, found = kubectl.create(RELEASE_WINDOWS, manifest("own", WEEKEND, timeZone=zone), dry_run=True)
    assert code == 422, found
    said = [each["message"] for each in found["details"]["causes"] if each["field"] == "spec.timeZone"]
    assert any(each.startswith(message) for each in said), said


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        ({}, "spec.schedules[0]"),
        ({**WEEKEND, "dates": {"from": "2026-12-20", "to": "2027-01-02"}}, "spec.schedules[0]"),
        ({"dates": {"from": "2027-01-02", "to": "2026-12-20"}}, "spec.schedules[0]"),
        ({"dates": {"from": "2026-13-02", "to": "2027-12-20"}}, "spec.schedules[0].dates.from"),
        ({"weekly": {"days": []}}, "spec.schedules[0].weekly.days"),
        ({"weekly": {"days": ["Monday"]}}, "spec.schedules[0].weekly.days[0]"),
        ({"weekly": {"days": ["Mon"], "from": "24:00"}}, "spec.schedules[0].weekly.from"),
        ({"weekly": {"days": ["Mon"], "to": "24:01"}}, "spec.schedules[0].weekly.to"),
        ({"cron": {"schedule": "0 18 * * 5", "durationSeconds": 59}}, "spec.schedules[0].cron.durationSeconds"),
        ({"cron": {"schedule": "0 18 * * 5", "durationSeconds": 2_678_401}}, "spec.schedules[0].cron.durationSeconds"),
    ],
)
def test_api_server_refuses_wrong_schedules(kubectl: Kubectl, schedule: Json, field: str) -> None:
    code, found = kubectl.create(RELEASE_WINDOWS, manifest("own", schedule), dry_run=True)
    assert code == 422, found
    assert field in {each["field"] for each in found["details"]["causes"]}
