"""The files for pipelines have the documented shape, and run commands that exist, in the same order."""

import re
import shlex
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
import pytest
import typer
import yaml
from typer.core import TyperGroup

from command.app import command_line
from reconciler.gates.schedules import intervals
from reconciler.gates.terms import DAY
from tests.integrations.objects import FOLDER, ROOT
from tests.unit.reconciler.gates.specs import at, spec


class Strict(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    pass


class Kebab(msgspec.Struct, forbid_unknown_fields=True, rename="kebab"):
    pass


class GitHubStep(Kebab):
    name: str = ""
    uses: str = ""
    run: str = ""
    env: dict[str, str] = {}


class GitHubJob(Kebab):
    runs_on: str
    timeout_minutes: int
    steps: list[GitHubStep]


class GitHubWorkflow(Kebab):
    name: str
    on: dict[str, Any]
    permissions: dict[Literal["contents"], Literal["read"]]
    concurrency: dict[Literal["group"], str]
    jobs: dict[str, GitHubJob]


class Image(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    entrypoint: list[str]


class GitLabJob(msgspec.Struct, forbid_unknown_fields=True):
    extends: str = ""
    stage: str = ""
    image: Image | None = None
    rules: list[dict[Literal["if"], str]] = []
    interruptible: bool = False
    timeout: Annotated[str, msgspec.Meta(pattern="^(|[0-9]+ minutes)$")] = ""
    resource_group: str = ""
    script: list[str] = []


class TektonStep(Strict):
    name: str
    image: str
    script: str
    working_dir: str = ""


class TektonTask(Strict):
    description: str
    workspaces: list[dict[Literal["name", "description"], str]]
    steps: list[TektonStep]


class SyncWindow(Strict):
    kind: Literal["allow", "deny"]
    schedule: str
    duration: Annotated[str, msgspec.Meta(pattern="^[0-9]+h$")]
    time_zone: str
    applications: list[str]
    manual_sync: bool


def loaded(file: str) -> Any:
    # YAML 1.1 reads the key `on` as a truth value; GitHub reads YAML 1.2
    return yaml.safe_load(re.sub(r"^on:", '"on":', (FOLDER / file).read_text(), flags=re.MULTILINE))


def github() -> list[str]:
    workflow = msgspec.convert(loaded("github-actions/release.yaml"), GitHubWorkflow)
    (job,) = workflow.jobs.values()
    assert all(bool(each.uses) != bool(each.run) for each in job.steps)
    return [each.run for each in job.steps]


def gitlab() -> list[str]:
    content = loaded("gitlab-ci/release.yaml")
    stages = content.pop("stages")
    jobs = msgspec.convert(content, dict[str, GitLabJob])
    run = [each for name, each in jobs.items() if not name.startswith(".")]
    assert [each.stage for each in run] == stages
    assert all((each.image or jobs[each.extends].image) is not None for each in run)
    return [line for each in run for line in each.script]


def tekton() -> list[str]:
    task = loaded("tekton/task.yaml")
    assert (task["apiVersion"], task["kind"]) == ("tekton.dev/v1", "Task")
    return [each.script for each in msgspec.convert(task["spec"], TektonTask).steps]


PIPELINES = {"github-actions": github, "gitlab-ci": gitlab, "tekton": tekton}
COMMANDS = [
    "altershield gates -f deploy/web.yaml -n shop || altershield wait deployment/web -n shop --for=open --timeout=1h",
    "kubectl apply -n shop -f deploy/web.yaml",
    "altershield wait deployment/web -n shop --timeout=30m",
]
"""They ask, release, and wait for the verdict."""


def commands(scripts: list[str]) -> Iterator[str]:
    """The lines of scripts that run altershield or kubectl. A line that ends with `||` goes on in the next one."""
    text = re.sub(r"\|\|\n\s*", "|| ", "\n".join(scripts))
    return (line.strip() for line in text.splitlines() if re.match(r"\s*(altershield|kubectl) ", line))


@pytest.mark.parametrize("name", PIPELINES)
def test_pipeline_asks_and_waits_before_it_releases_and_then_waits_for_the_verdict(name: str) -> None:
    assert list(commands(PIPELINES[name]())) == COMMANDS


@pytest.mark.parametrize("line", [part for line in COMMANDS for part in line.split(" || ") if "kubectl" not in part])
def test_commands_of_pipelines_exist_with_their_options(line: str) -> None:
    _, verb, *arguments = shlex.split(line)
    group = typer.main.get_command(command_line())
    assert isinstance(group, TyperGroup)
    group.commands[verb].make_context(verb, arguments)


def test_page_about_pipelines_runs_the_same_commands() -> None:
    page = re.sub(r"\|\|\n\s*", "|| ", (ROOT / "docs" / "integrations.md").read_text())
    assert [line for line in page.splitlines() if line in COMMANDS] == COMMANDS


def test_sync_window_of_argo_cd_denies_in_the_times_of_the_release_window() -> None:
    project = loaded("argocd/sync-window.yaml")
    assert (project["apiVersion"], project["kind"]) == ("argoproj.io/v1alpha1", "AppProject")
    (window,) = msgspec.convert(project["spec"]["syncWindows"], list[SyncWindow])
    page = (ROOT / "docs" / "release-gates.md").read_text()
    blocks = re.findall(r"^```yaml\n(apiVersion.*?)^```", page, re.MULTILINE | re.DOTALL)
    objects = [each for block in blocks for each in yaml.safe_load_all(block)]
    (weekend,) = [each["spec"] for each in objects if each["metadata"]["name"] == "weekend"]
    assert (window.kind, window.time_zone) == (weekend["type"].lower(), weekend["timeZone"])
    cron = {"cron": {"schedule": window.schedule, "durationSeconds": int(window.duration[:-1]) * 3600}}
    begin = at("2026-11-23 00:00", window.time_zone)
    times = [
        intervals(spec(*schedules, zone=window.time_zone), {}, begin, begin + 35 * DAY)
        for schedules in ([cron], weekend["schedules"])
    ]
    assert times[0] == times[1] != []
