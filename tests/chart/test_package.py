"""`make package` packages the chart so that the same files give the same bytes."""

import base64
import os
import shutil
import tarfile
from pathlib import Path

import helm_python
import pytest
import yaml

from supply_chain import chart as packaging
from tests.chart.rendering import CHART

EPOCH = 1_700_000_000


def test_archives_of_two_copies_have_the_same_bytes(tmp_path: Path) -> None:
    archives = []
    for name, mode, time in (("one", 0o644, 1), ("two", 0o600, 2_000_000_000)):
        copy = Path(shutil.copytree(CHART, tmp_path / name / "altershield"))
        for path in sorted(copy.rglob("*"), reverse=name == "two"):
            os.utime(path, (time, time))
            if path.is_file():
                path.chmod(mode)
        archives.append(packaging.package(copy, tmp_path / f"{name}-archive", EPOCH).read_bytes())
    assert archives[0] == archives[1]


def test_archive_contains_the_chart_with_the_time_of_the_commit(tmp_path: Path) -> None:
    archive = packaging.package(CHART, tmp_path, EPOCH)
    with tarfile.open(archive) as members:
        assert {member.mtime for member in members} == {EPOCH}
        names = {member.name for member in members}
    assert {
        "altershield/Chart.yaml",
        "altershield/values.schema.json",
        "altershield/files/crds/changepods.yaml",
    } <= names
    assert [name for name in names if "/ci/" in name] == []
    with helm_python.Chart.load(archive) as packaged, helm_python.Chart.load(CHART) as chart:
        assert packaged.render({}, name="altershield") == chart.render({}, name="altershield")


def test_time_of_the_archive_is_that_of_the_last_commit_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "17")
    assert packaging.source_date_epoch() == 17
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert packaging.source_date_epoch() > EPOCH


def test_icon_of_the_chart_is_the_file_beside_it(chart: helm_python.Chart) -> None:
    kind, _, content = chart.metadata["icon"].partition(",")
    assert kind == "data:image/svg+xml;base64"
    assert base64.b64decode(content) == (CHART.parent / "icon.svg").read_bytes()


def test_capability_level_is_not_above_what_the_chart_does(chart: helm_python.Chart) -> None:
    """The levels build on each other; "full lifecycle" wants backups made by the operator."""
    level = chart.metadata["annotations"]["artifacthub.io/operatorCapabilities"]
    assert level in ("basic install", "seamless upgrades")


def test_metadata_of_the_repository_is_outside_of_the_chart() -> None:
    metadata = yaml.safe_load((CHART.parent / "artifacthub-repo.yml").read_text())
    assert set(metadata) <= {"repositoryID", "owners", "ignore"}
    assert all(owner["name"] and owner["email"] for owner in metadata.get("owners", ()))
