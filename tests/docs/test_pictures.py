"""The pictures show the output of the code. Only text that is the same in each run is compared."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml

from command.app import PANELS
from command.demo import in_steps
from command.demo.sample import REPLICAS, manifest
from command.demo.steps import STEPS
from command.status.table import Layout
from docs.pictures import DIRECTORY
from tests.docs.pages import PAGES, ROOT

PICTURES = sorted(ROOT.glob("docs/**/*.svg"))
_SVG = "{http://www.w3.org/2000/svg}"


def text_of(picture: Path) -> str:
    """The text of a picture without white space, since lines are wrapped in it."""
    root = ET.parse(picture).getroot()  # noqa: S314  (ours)
    return squeezed("".join("".join(text.itertext()) for text in root.iter(f"{_SVG}text")))


def squeezed(text: str) -> str:
    return re.sub(r"\s", "", text)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_picture_is_an_svg_without_external_references_that_a_page_shows(picture: Path) -> None:
    content = picture.read_text()
    assert ET.fromstring(content).tag == f"{_SVG}svg"  # noqa: S314  (ours)
    assert not re.search(r"(?:url\(|href=)[\"']?https?:", content), "the picture loads a file from another server"
    shown = {
        (page.parent / name).resolve() for page in PAGES for name in re.findall(r"\]\(([^)]+\.svg)", page.read_text())
    }
    assert picture in shown


def test_picture_of_the_demo_shows_each_step_and_its_commands() -> None:
    shown = text_of(DIRECTORY / "demo.svg")
    for number, step in enumerate(STEPS, 1):
        assert squeezed(f"{number}/{len(STEPS)} {step.title}: {step.explanation} $ kubectl") in shown
    assert squeezed(f"✓ All {len(STEPS)} steps had the expected outcome")[1:] in shown


def test_picture_of_a_denial_shows_what_is_denied_why_and_the_ways_out() -> None:
    shown = text_of(DIRECTORY / "denial.svg")
    for part in ("denied the request: deployment web is suspended", "error rate 12 %", "altershield why deploy/web"):
        assert squeezed(part) in shown
    for verb in ("approve", "retry", "repair", "resume", "rollback"):
        assert squeezed(f"altershield {verb} deployment/web -n shop") in shown


def test_picture_of_status_shows_its_columns_and_states() -> None:
    shown = text_of(DIRECTORY / "status.svg")
    assert squeezed(f"$ altershield status -n shop {''.join(Layout().header)}") in shown
    for state in ("Suspend", "Running", "Success", "Failed"):
        assert state in shown
    assert squeezed("are not shown, add --all to see them") in shown


def test_picture_of_the_help_shows_each_command_in_its_group() -> None:
    shown = text_of(DIRECTORY / "help.svg")
    for title, commands in PANELS.items():
        listed = "".join(squeezed(f"{name}{each.short}") for name, each in commands.items())
        assert f"{title}:{listed}" in shown


@pytest.mark.parametrize(
    ("picture", "command", "words"),
    [
        ("tree", "status deploy/web -n shop --watch", ["├─ version", "passed without a check", "└─ step 3"]),
        (
            "why",
            "why deploy/api -n shop",
            ["Reason: failed: api-", "What to do:", "altershield approve deployment/api"],
        ),
        ("history", "history deploy/mail -n shop", ["Rollback", "mail:2.2", "Failed"]),
    ],
)
def test_picture_of_a_command_shows_its_output(picture: str, command: str, words: list[str]) -> None:
    shown = text_of(DIRECTORY / f"{picture}.svg")
    assert squeezed(f"$ altershield {command}") in shown
    assert [each for each in words if squeezed(each) not in shown] == []


@pytest.mark.parametrize(("sample", "labels"), [("sleep", {}), ("sleep-repaired", {"test": "1234"})])
def test_demo_applies_the_samples_that_it_names(sample: str, labels: dict[str, str]) -> None:
    applied = manifest(template_labels=labels)
    del applied["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert applied == yaml.safe_load((ROOT / "docs" / "samples" / f"{sample}.yaml").read_text())
    assert applied["spec"]["replicas"] == REPLICAS


def test_demo_applies_the_policy_that_it_names() -> None:
    assert in_steps.policy() == yaml.safe_load((ROOT / "docs" / "samples" / "steps.yaml").read_text())
