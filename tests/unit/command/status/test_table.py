"""The table of releases."""

from typing import Any

import msgspec

from altershield.api import labels
from altershield.api.change_workload import ChangeWorkload, ChangeWorkloadStatus, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.api.pod_verdicts import PodInfo
from altershield.api.policy import AppliedPolicy
from altershield.views.releases.model import Release
from altershield.workloads.workload import Workload
from command.columns import Columns
from command.status.table import Layout, progress, row
from tests.support.workloads import BY_NAME
from tests.unit.altershield.views.builders import DONE, V1, V2, manifest, release, stored, workload

NOW = 1683791475.0
FAILED = ChangeWorkloadStatus(
    status=WorkloadState.SUSPEND, entry_time_unix=1683791175, defense_check_fail_pods=(PodInfo("db-0", message="x"),)
)


def cells(of: ChangeWorkload, its: Workload, layout: Layout | None = None) -> dict[str, str]:
    layout = layout or Layout()
    return dict(zip(layout.header, row(Release(its, stored(of)), layout, NOW).cells, strict=True))


def message(*conditions: Condition, **status: Any) -> str:
    return cells(release(ChangeWorkloadStatus(conditions=conditions, **status)), workload())["MESSAGE"]


def test_row_has_the_columns_and_a_star_at_the_present_version() -> None:
    shown = cells(release(FAILED, "StatefulSet", "db", created=int(NOW) - 330), workload("StatefulSet", "db"))
    assert shown == {
        "NAME": "statefulset.apps/db",
        "VERSION": f"{V1[:12]}*",
        "IMAGES": "busybox",
        "STATE": "Suspend",
        "PASSED": "0",
        "FAILED": "1",
        "WAITING": "0",
        "AGE": "5m30s",
        "MESSAGE": "failed: db-0 (x)",
    }
    superseded = cells(release(FAILED, "StatefulSet", "db"), workload("StatefulSet", "db", V2))
    assert (superseded["VERSION"], superseded["IMAGES"]) == (V1[:12], "<unknown>")


def test_namespace_is_a_column_if_all_namespaces_are_shown() -> None:
    assert Layout().header[0] == "NAME"
    assert cells(release(), workload(), Layout(namespaces=True))["NAMESPACE"] == "shop"


def test_wide_row_has_the_whole_version_and_the_time_of_the_state() -> None:
    wide = cells(release(FAILED), workload(), Layout(wide=True))
    assert (wide["VERSION"], wide["SINCE"]) == (f"{V1}*", "2023-05-11T07:46:15Z")


def test_wide_row_names_the_policy_that_applies_and_its_namespace_if_it_is_another_one() -> None:
    def shown(policy: AppliedPolicy) -> str:
        of = release(FAILED)
        spec = msgspec.structs.replace(of.spec, policy=policy)
        return cells(msgspec.structs.replace(of, spec=spec), workload(), Layout(wide=True))["POLICY"]

    assert shown(AppliedPolicy(namespace="shop", name="gate")) == "gate"
    assert shown(AppliedPolicy(namespace="altershieldoperator-system", name="default")) == (
        "altershieldoperator-system/default"
    )
    assert shown(AppliedPolicy(start_timeout_seconds=900)) == "<none>", "the annotation of a workload is no policy"


def test_row_of_a_release_that_is_not_processed_has_no_age_and_a_message() -> None:
    layout = Layout(wide=True)
    for each in (None, stored(release(DONE))):
        pending = row(Release(workload(**{labels.DEFENSE_STATUS: ""}), each), layout, NOW)
        shown = dict(zip(layout.header, pending.cells, strict=True))
        assert (shown["VERSION"], shown["STATE"], shown["PASSED"]) == (f"{V1}*", "Init", "0")
        assert (shown["AGE"], shown["SINCE"], shown["POLICY"]) == ("<unknown>",) * 3
        assert shown["MESSAGE"] == "admitted, not yet processed"


def test_row_names_the_images_of_the_version_and_first_those_that_it_changed() -> None:
    layout = Layout()
    older = Release(workload(version=V2), stored(release()), older_images=(("web", "web:1"),))
    assert row(older, layout, NOW).cells[layout.header.index("IMAGES")] == "web:1"
    obj = manifest()
    containers = [{"name": name, "image": f"registry.example/team/{name}:2"} for name in ("proxy", "web", "log")]
    obj["spec"]["template"]["spec"]["containers"] = containers
    its = BY_NAME["Deployment"].read(msgspec.json.encode(obj))
    before = (("proxy", "proxy:2"), ("web", "web:1"), ("log", "log:2"))
    shown = row(Release(its, stored(release()), images_before=before), layout, NOW)
    assert shown.cells[layout.header.index("IMAGES")] == "<unknown>", "the template is not that of the version"
    present = Release(its, None, reviewed=False, images_before=before)
    assert row(present, layout, NOW).cells[layout.header.index("IMAGES")] == "web:2,proxy:2 +1"


def test_message_contains_no_control_characters() -> None:
    said = message(Condition(ConditionType.VERIFIED, "False", "R", "pod a: \x1b[31mred\nline"))
    assert said == "pod a:  [31mred line"


def test_message_of_an_ungated_release_begins_with_ungated() -> None:
    ungated = Condition(
        ConditionType.UNGATED, "True", "VersionReused", "web-1 was released without an admission review: ..."
    )
    verified = Condition(ConditionType.VERIFIED, "True", "PodsPassed", "5 of 5 pods passed")
    assert message(ungated, verified) == "ungated (VersionReused); 5 of 5 pods passed"


def test_message_gives_the_reason_why_a_release_waits() -> None:
    assert message(Condition(ConditionType.STALLED, "True", "Paused", "it is paused")) == "Paused: it is paused"
    verified = Condition(ConditionType.VERIFIED, "Unknown", "NoPods", "0 of 0 pods passed")
    assert (
        message(Condition(ConditionType.NO_REPLICAS, "True", "R", "no pod is wanted"), verified) == "no pod is wanted"
    )
    assert message(Condition(ConditionType.NO_REPLICAS, "False", "R", "x"), verified) == "0 of 0 pods passed"


def test_progress_names_the_workload_the_state_and_the_reason() -> None:
    waits = ChangeWorkloadStatus(
        status=WorkloadState.RUNNING, conditions=(Condition(ConditionType.STALLED, "True", "Paused", "it is paused"),)
    )
    assert progress(Release(workload(), stored(release(waits)))) == (
        "Waiting for the release of deployment.apps/web: Running, Paused: it is paused"
    )


def test_columns_are_aligned_and_widen_for_later_lines() -> None:
    columns = Columns(2)
    assert columns.lines([("NAME", "STATE"), ("a", "Success")]) == ["NAME   STATE", "a      Success"]
    assert columns.lines([("longer", "Init")]) == ["longer   Init"]
    assert columns.lines([("a", "Init")]) == ["a        Init"]


def test_last_column_is_cut_to_the_width_of_the_terminal_but_not_to_nothing() -> None:
    rows = [("NAME", "MESSAGE"), ("web", "one two three four five six seven"), ("db", "short")]
    assert Columns(2).lines(rows, room=31) == ["NAME   MESSAGE", "web    one two three four five…", "db     short"]
    assert Columns(2).lines(rows, room=5) == ["NAME   MESSAGE", "web    one two three four…", "db     short"]
    assert Columns(2).lines(rows) == ["NAME   MESSAGE", "web    one two three four five six seven", "db     short"]


def test_columns_count_the_cells_of_wide_characters() -> None:
    rows = [("名前", "x"), ("web", "検査に失敗しましたので取り消します")]
    assert Columns(2).lines(rows, room=29) == ["名前   x", "web    検査に失敗しましたの…"]
