"""GitHub's workflows: pinned, with no more permissions than needed, and harmless for pull requests of forks."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from supply_chain import tools
from tests.supply_chain.locks import ROOT
from tests.support.processes import run

Workflow = dict[str, Any]

FOLDER = ROOT / ".github" / "workflows"
FILES = sorted(FOLDER.glob("*.yaml"))
WRITES = {  # by workflow and job: the permissions to write
    ("release", "image"): {"packages", "id-token", "attestations"},
    ("release", "chart"): {"packages", "id-token", "attestations"},
    ("release", "publish"): {"contents", "id-token", "attestations"},
}

each_file = pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)


def read(file: Path) -> Workflow:
    loaded: Workflow = yaml.safe_load(file.read_text())
    loaded["on"] = loaded.pop(True)  # YAML 1.1 reads `on` as a boolean
    return loaded


def steps(workflow: Workflow) -> Iterator[Workflow]:
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


def test_workflows_exist() -> None:
    assert [file.stem for file in FILES] == ["e2e", "release", "test"]


def test_workflows_follow_the_schema_of_github() -> None:
    done = run([tools.find("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *FILES])
    assert done.returncode == 0, done.stdout


def test_updater_follows_the_schema_of_renovate() -> None:
    config = ROOT / ".github" / "renovate.json"
    done = run([tools.find("check-jsonschema"), "--builtin-schema", "vendor.renovate", config])
    assert done.returncode == 0, done.stdout


def test_zizmor_finds_nothing_of_medium_or_high_severity() -> None:
    command = [tools.find("zizmor"), "--offline", "--no-progress", "--min-severity", "medium", FOLDER]
    done = run(command, directory=ROOT)
    assert done.returncode == 0, done.stdout


@each_file
def test_actions_are_pinned_by_commit_with_the_version_as_a_comment(file: Path) -> None:
    used = re.findall(r"(?m)^ *(?:- )?uses: (.*)$", file.read_text())
    foreign = [each for each in used if not each.startswith("./.github/workflows/")]
    pinned = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    assert [each for each in foreign if not pinned.fullmatch(each)] == []
    assert all((ROOT / each).is_file() for each in set(used) - set(foreign))


def test_action_has_one_version_in_all_workflows() -> None:
    used = {each for file in FILES for each in re.findall(r"uses: (\S+@\S+ # \S+)", file.read_text())}
    assert len({each.partition("@")[0] for each in used}) == len(used)


@each_file
def test_images_are_pinned_by_digest(file: Path) -> None:
    images = re.findall(r"(?m)^ *(?:container|image|node): (.*)$", file.read_text())
    assert [each for each in images if not re.search(r"@sha256:[0-9a-f]{64}$", each) and "${{" not in each] == []


def test_tests_run_in_the_base_image_of_the_dockerfile() -> None:
    (base,) = set(re.findall(r"(?m)^FROM (\S+)", (ROOT / "Dockerfile").read_text()))
    assert read(FOLDER / "test.yaml")["jobs"]["test"]["container"] == base


@each_file
def test_permissions_are_given_to_jobs_and_no_more_than_needed(file: Path) -> None:
    workflow = read(file)
    assert workflow["permissions"] == {}
    for name, job in workflow["jobs"].items():
        found = job["permissions"]
        writes = {each for each, access in found.items() if access == "write"}
        assert writes == WRITES.get((file.stem, name), set()), name
        assert {each for each, access in found.items() if access == "read"} <= {"contents"}, name


@each_file
def test_jobs_that_write_need_a_tag_and_the_release_environment(file: Path) -> None:
    workflow = read(file)
    writing = [job for job in workflow["jobs"].values() if "write" in job["permissions"].values()]
    if writing:
        assert workflow["on"] == {"push": {"tags": ["v*"]}}
        assert {job["environment"] for job in writing} == {"release"}


@each_file
def test_pull_requests_of_forks_see_no_secret(file: Path) -> None:
    text, workflow = file.read_text(), read(file)
    assert "pull_request_target" not in text
    assert "workflow_run" not in text
    assert "secrets." not in text
    assert "secrets:" not in text
    if "pull_request" in workflow["on"]:
        assert "github.token" not in text


@each_file
def test_checkouts_keep_no_credentials(file: Path) -> None:
    checkouts = [step for step in steps(read(file)) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@each_file
def test_scripts_get_expressions_by_variables_only(file: Path) -> None:
    assert [step["run"] for step in steps(read(file)) if "${{" in step.get("run", "")] == []


@each_file
def test_runs_have_time_limits_and_do_not_pile_up(file: Path) -> None:
    workflow = read(file)
    assert workflow["concurrency"]["group"] == f"{file.stem}-${{{{ github.ref }}}}"
    assert all("timeout-minutes" in job or "uses" in job for job in workflow["jobs"].values())


def test_end_to_end_tests_run_on_three_versions_from_the_oldest_supported() -> None:
    versions = [
        each["kubernetes"] for each in read(FOLDER / "e2e.yaml")["jobs"]["kind"]["strategy"]["matrix"]["include"]
    ]
    chart = yaml.safe_load((ROOT / "charts" / "altershield" / "Chart.yaml").read_text())
    assert len(versions) == 3
    assert chart["kubeVersion"] == f">={versions[0]}.0-0"


def test_release_needs_all_tests() -> None:
    jobs = read(FOLDER / "release.yaml")["jobs"]
    called = {name: job["uses"].rpartition("/")[2] for name, job in jobs.items() if "uses" in job}
    assert called == {"test": "test.yaml", "e2e": "e2e.yaml"}
    assert called.keys() <= set(jobs["image"]["needs"])
    assert "image" in jobs["chart"]["needs"]
    assert {"image", "chart", "plugin", "sbom"} <= set(jobs["publish"]["needs"])


def test_make_targets_of_the_workflows_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = {
        target
        for file in FILES
        for step in steps(read(file))
        if step.get("run", "").startswith("make ")
        for target in step["run"].split()[1:]
    }
    assert targets == {"lint", "licenses", "sbom", "package"}
    assert [each for each in targets if not re.search(rf"(?m)^{each}:", makefile)] == []


def test_updater_renews_everything_that_is_pinned() -> None:
    config = json.loads((ROOT / ".github" / "renovate.json").read_text())
    assert {"github-actions", "dockerfile", "pip-compile", "custom.regex"} <= set(config["enabledManagers"])
    (locks,) = config["pip-compile"]["managerFilePatterns"]
    for lock in ROOT.glob("*.lock"):
        assert re.search(locks.strip("/"), lock.name), lock.name
    e2e = (FOLDER / "e2e.yaml").read_text()
    found = [
        re.findall(re.sub(r"\(\?<(\w+)>", r"(?P<\1>", pattern), e2e)
        for each in config["customManagers"]
        for pattern in each["matchStrings"]
    ]
    assert [len(each) for each in found] == [3, 1]
