"""The steps of releases in the history."""

import msgspec

from altershield.api.rollout import PassedStep
from altershield.releases import history
from altershield.releases.history import Entry, Record
from altershield.views.history import Found, Version
from command.history.table import about, table
from kube_base.meta import ObjectMeta
from kube_base.times import rfc3339
from tests.unit.altershield.views.builders import V1, V2, workload

NOW = 1_700_000_000
STEPS = (PassedStep(1, 1, NOW, NOW + 600), PassedStep(3, 5, NOW + 600, NOW + 660, "ann"))


def entry(version: str, record: Record) -> Entry:
    return Entry(ObjectMeta(annotations=history.annotations(record, None)), version, {}, 1)


def test_steps_are_in_the_record_of_a_version_with_their_times_and_who_promoted_them() -> None:
    lines = about(entry(V1, Record(released=rfc3339(NOW), state="Success", since=rfc3339(NOW + 700), steps=STEPS)))
    assert lines[1:] == [
        f"  step 1, 1 pod: {rfc3339(NOW)} to {rfc3339(NOW + 600)}",
        f"  step 3, 5 pods: {rfc3339(NOW + 600)} to {rfc3339(NOW + 660)}, promoted by ann",
    ]


def test_wide_table_has_how_long_each_step_took() -> None:
    entries = [entry(V1, Record(number=2, steps=STEPS)), entry(V2, Record(number=1))]
    found = Found(workload(), [Version(each, {}) for each in entries])
    header, first, second = table(found, wide=True)
    column = header.index("STEPS")
    assert [line[column:].split()[0] for line in (first, second)] == ["1=10m,3=60s", "<none>"]
    assert "STEPS" not in table(found, wide=False)[0]


def test_record_without_steps_is_stored_as_before() -> None:
    assert b"steps" not in msgspec.json.encode(Record(number=1))
    assert msgspec.json.decode(msgspec.json.encode(Record(steps=STEPS)), type=Record).steps == STEPS


def test_service_account_is_named_by_its_namespace_and_name_unless_the_table_is_wide() -> None:
    account = "system:serviceaccount:ci:deployer"
    found = Found(workload(), [Version(entry(V1, Record(number=1, released_by=account)), {})])
    assert " ci/deployer " in table(found, wide=False)[1]
    assert f" {account} " in table(found, wide=True)[1]


def test_images_that_a_release_changed_come_first() -> None:
    def version(number: int, web: str) -> Version:
        containers = [{"name": "proxy", "image": "r.example/proxy:1"}, {"name": "web", "image": f"r.example/web:{web}"}]
        made = entry(f"{number}" * 32, Record(number=number))
        made.template = {"spec": {"containers": containers}}
        return Version(made, {})

    found = Found(workload(), [version(2, "2"), version(1, "1")])
    column = table(found, wide=False)[0].split().index("IMAGES")
    assert [line.split()[column] for line in table(found, wide=False)[1:]] == ["web:2,proxy:1", "proxy:1,web:1"]
    assert table(found, wide=True)[1].split()[column] == "r.example/proxy:1,r.example/web:2"
