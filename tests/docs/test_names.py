"""Values, files and YAML in the documents exist and are valid."""

import ast
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from altershield.api.labels import IGNORED_SUSPEND
from altershield.workloads import Adapter
from altershield.workloads.clone_sets import CloneSets
from tests.chart.rendering import DEFAULTS as VALUES
from tests.docs.pages import PAGES, ROOT, blocks

_PATH = re.compile(r"`([a-zA-Z]+(?:\.[a-zA-Z]+)+)(?:: [^`]*)?`")
_FOLDERS = "altershield|command|gatekeeper|reconciler|certgen|kube_base|bench|dashboards|sandbox|charts|docs|tests"
_MODULE = re.compile(rf"`((?:{_FOLDERS})/[\w./-]*|[\w/]+\.py)`")

page_of = pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())


@page_of
def test_chart_values_named_in_a_page_exist(page: Any) -> None:
    named = {path for path in _PATH.findall(page.read_text()) if path.partition(".")[0] in VALUES}
    assert {path for path in named if not _is_value(path)} == set()


def _is_value(path: str) -> bool:
    found: Any = VALUES
    for key in path.split("."):
        if not isinstance(found, dict) or key not in found:
            return False
        found = found[key]
    return True


@page_of
def test_yaml_blocks_of_a_page_are_valid(page: Any) -> None:
    for block in blocks(page.read_text()):
        if block.language == "yaml":
            assert all(isinstance(part, dict) for part in yaml.safe_load_all(block.text)), f"line {block.line}"


@page_of
def test_tests_and_benches_named_in_a_page_exist(page: Any) -> None:
    named = set(re.findall(r"`((?:tests|bench|sandbox)/[\w/]+\.py)", page.read_text()))
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_files_named_in_the_architecture_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    examples = {"gatekeeper/handlers/kept/config_map.py"}
    planned = {"reconciler/order/"}
    assert [name for name in _MODULE.findall(page) if name not in examples | planned and not any(_places(name))] == []
    assert not any(next(_places(name)) for name in planned), "it is not only planned any more"


def test_words_of_the_architecture_are_types_in_the_files_that_it_names() -> None:
    section = (ROOT / "docs" / "architecture.md").read_text().partition("## Words\n")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+)` in `([\w/.]+)`", section)
    missing = [
        name for name, file in named if not re.search(rf"^class {name}\b", (ROOT / file).read_text(), re.MULTILINE)
    ]
    assert (missing, 15 <= len(named) <= 30) == ([], True)


def test_adapter_in_the_architecture_has_the_members_of_an_adapter() -> None:
    section = (ROOT / "docs" / "architecture.md").read_text().partition("## Add a kind\n")[2]
    members: dict[str, str] = {}
    for shown in ast.parse(next(block.text for block in blocks(section) if block.language == "python")).body:
        assert isinstance(shown, ast.ClassDef)
        for part in shown.body:
            if isinstance(part, ast.FunctionDef):
                members[part.name] = ""
            elif isinstance(part, ast.Assign):
                members[ast.unparse(part.targets[0])] = ast.unparse(part.value)
    assert set(members) == {name for name in vars(Adapter) if not name.startswith("_")}
    literals = {name: ast.literal_eval(value) for name, value in members.items() if value and not value.isupper()}
    assert literals == {name: getattr(CloneSets, name) for name in literals}


def _places(name: str) -> Iterator[bool]:
    for package in (
        "",
        "gatekeeper",
        "gatekeeper/handlers/releases",
        "altershield/admission",
        "reconciler",
        "reconciler/batches",
        "reconciler/releases",
        "certgen",
    ):
        yield (ROOT / package / name).exists()
    yield (ROOT / "tests" / "unit" / "gatekeeper" / name).exists()


def test_samples_do_not_have_the_label_ignored_suspend() -> None:
    samples = list((ROOT / "docs" / "samples").glob("*.yaml"))
    assert samples
    for sample in samples:
        assert IGNORED_SUSPEND not in sample.read_text(), (
            f"{sample.name}: the label would admit every later release, too"
        )
