"""The formats of `-o`, with and without `-w`."""

import io
import json

import pytest
import yaml
from msgspec.structs import replace
from rich.console import Console

from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from altershield.views.releases.model import Release
from command.status.printers import Output, Printer
from tests.unit.altershield.views.builders import DONE, RUNNING, V1, V2, release, stored, workload

OLD = Release(workload(version=V2), stored(release(DONE), managedFields=[{}], resourceVersion="1"))
NEW = Release(workload(version=V2), stored(release(RUNNING, version=V2)))
PENDING = Release(workload("StatefulSet", "db"), None)


def test_json_and_yaml_are_a_list_of_the_stored_objects(capsys: pytest.CaptureFixture[str]) -> None:
    Printer(Output.JSON, "shop").whole([OLD, NEW, PENDING])
    shown = json.loads(text := capsys.readouterr().out)
    assert (shown["apiVersion"], shown["kind"], shown["metadata"]) == ("v1", "List", {"resourceVersion": ""})
    assert [each["metadata"]["name"] for each in shown["items"]] == [f"web--x--{V1}", f"web--x--{V2}"]
    assert {each["kind"] for each in shown["items"]} == {"ChangeWorkload"}
    assert shown["items"][0]["metadata"]["resourceVersion"] == "1", "the output must be the whole object"
    assert "managedFields" not in text
    Printer(Output.YAML, "shop").whole([OLD, NEW, PENDING])
    assert yaml.safe_load(capsys.readouterr().out) == shown


@pytest.mark.parametrize(("output", "load"), [(Output.JSON, json.loads), (Output.YAML, yaml.safe_load)])
def test_json_and_yaml_without_releases_are_an_empty_list(
    output: Output, load: type, capsys: pytest.CaptureFixture[str]
) -> None:
    Printer(output, "shop").whole([])
    assert load(capsys.readouterr().out)["items"] == []


def test_output_name_has_the_names_of_kubectl(capsys: pytest.CaptureFixture[str]) -> None:
    Printer(Output.NAME, "shop").whole([OLD, PENDING])
    assert capsys.readouterr().out == f"changeworkload.app.ops.cloud.alipay.com/web--x--{V1}\n"


def test_table_without_releases_has_no_header(capsys: pytest.CaptureFixture[str]) -> None:
    Printer(None, "shop").whole([])
    assert capsys.readouterr().out == ""


def test_watch_prints_only_changed_rows(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(None, "shop")
    printer.changes([OLD])
    header, first = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["NAME", "VERSION", "IMAGES"]
    assert first.split()[3] == "Success"
    printer.changes([OLD, NEW])
    (second,) = capsys.readouterr().out.splitlines()
    assert second.split()[:4] == ["deployment.apps/web", f"{V2[:12]}*", "busybox", "Running"]
    printer.changes([OLD, NEW])
    assert capsys.readouterr().out == ""


def test_watch_of_objects_prints_single_objects(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(Output.JSON, "shop")
    printer.changes([OLD])
    assert json.loads(capsys.readouterr().out)["kind"] == "ChangeWorkload"
    printer.changes([OLD])
    assert capsys.readouterr().out == ""
    changed = Release(OLD.workload, stored(release(RUNNING)))
    for output in (Output.YAML, Output.NAME):
        printer = Printer(output, "shop")
        printer.changes([OLD, NEW])
        assert capsys.readouterr().out.count("changeworkload" if output is Output.NAME else "---") == 2
    assert changed.stored is not None


@pytest.mark.parametrize(
    ("output", "terminal", "is_cut"), [(None, True, True), (None, False, False), (Output.WIDE, True, False)]
)
def test_messages_are_cut_on_a_terminal_only(output: Output | None, terminal: bool, is_cut: bool) -> None:
    words = "a sentence that no terminal of a hundred columns has a place for, with more words than it has columns"
    condition = Condition(ConditionType.VERIFIED, "True", "R", words)
    long = Release(workload(), stored(release(replace(DONE, conditions=(condition,)))))
    out = io.StringIO()
    Printer(output, "shop", Console(file=out, force_terminal=terminal, width=130, soft_wrap=True)).whole([long])
    (line,) = [line for line in out.getvalue().splitlines() if "a sentence" in line]
    assert (words in line) is not is_cut
    assert ("…" in line) is is_cut


def test_watch_prints_a_known_release_only_after_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    printer = Printer(None, "shop")
    printer.changes([NEW])
    printer.known([OLD, NEW])
    capsys.readouterr()
    printer.changes([OLD, NEW])
    assert capsys.readouterr().out == ""
    printer.changes([Release(OLD.workload, stored(release(RUNNING))), NEW])
    assert len(capsys.readouterr().out.splitlines()) == 1
