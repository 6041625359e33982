"""`altershield policy check`, without a cluster and by a dry run on the sandbox's API server."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from altershield.api.resources import API_VERSION, CHANGE_PODS, DEFENSE_POLICIES
from command import main
from command.manifests import MAX_FILE
from tests.fault.reconciler_cluster import Cluster, running_cluster, version
from tests.fault.reconciler_stories import good_release, second_release, until_history
from tests.support.processes import Done, call

STEPS = {
    "rollout": {
        "steps": [{"pods": 1, "soakSeconds": 600}, {"pods": "5%"}, {"pods": "30%", "soakSeconds": 60, "approval": True}]
    }
}


def policy(spec: dict[str, Any], **metadata: str) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": DEFENSE_POLICIES.kind,
        "metadata": {"name": "web", **metadata},
        "spec": spec,
    }


class Checker:
    def __init__(self, directory: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.file = directory / "policy.json"
        self._capture = capture

    def run(self, content: object, *more: str, code: int = 0) -> Done:
        self.file.write_text(content if isinstance(content, str) else json.dumps(content))
        done = call(main, "altershield", "policy", "check", "-f", str(self.file), *more, capture=self._capture)
        assert done.returncode == code, f"{done.stdout}{done.stderr}"
        return done

    def offline(self, content: object, *more: str, code: int = 0) -> Done:
        return self.run(content, "--offline", *more, code=code)


@pytest.fixture
def checker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Checker:
    return Checker(tmp_path, capsys)


def test_accepted_policy_has_the_steps_of_a_release_and_its_least_time(checker: Checker) -> None:
    assert checker.offline(policy(STEPS, namespace="shop"), "--replicas", "10").stdout.splitlines() == [
        "defensepolicy shop/web: accepted",
        "Steps of a release of 10 pods:",
        "├─ 1   1 pod       soak 10m",
        "├─ 2   1 pod       skipped: it has no more pods than an earlier step",
        "├─ 3   3 pods      soak 60s, then a person has to promote the release",
        "└─ 4   10 pods     no soak, by the workload's own strategy",
        "Least time: 11m, without waiting for pods and checks and for 1 approval; a step fails after 60m",
    ]
    assert "├─ 2   10 pods     soak 5m\n" in checker.offline(policy(STEPS), "--replicas=200").stdout


def test_policy_without_steps_or_that_holds_nothing_says_so(checker: Checker) -> None:
    assert "No steps: the workload's own strategy applies." in checker.offline(policy({})).stdout
    assert "The mode warn holds nothing" in checker.offline(policy({**STEPS, "mode": "warn"})).stdout
    assert "with 0 replicas is released as without steps" in checker.offline(policy(STEPS), "--replicas=0").stdout


def test_policy_with_node_selectors_has_steps_of_a_daemonset_and_of_other_kinds(checker: Checker) -> None:
    canary = {"nodeSelector": {"pool": "canary"}, "soakSeconds": 60}
    steps = {"rollout": {"steps": [canary, {"pods": "30%", "soakSeconds": 0}]}}
    assert checker.offline(policy(steps), "--replicas", "10").stdout.splitlines()[1:] == [
        "Steps of a release of a DaemonSet on 10 nodes:",
        "├─ 1   its nodes   the pods on nodes with pool=canary, soak 60s",
        "├─ 2   3 pods      no soak",
        "└─ 3   10 pods     no soak, by the workload's own strategy",
        "Least time: 60s, without waiting for pods and checks; a step fails after 60m",
        "Steps of a release of another kind, of 10 pods:",
        "├─ 1   3 pods      no soak",
        "└─ 2   10 pods     no soak, by the workload's own strategy",
        "Least time: 0s, without waiting for pods and checks; a step fails after 60m",
    ]
    assert (
        "No steps of a release of another kind, of 10 pods: all steps of its policy have a nodeSelector and no pods"
        in checker.offline(policy({"rollout": {"steps": [canary]}})).stdout
    )


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"rollout": {"steps": [{"pods": 1, "soak": 5}]}}, "unknown fields: spec.rollout.steps[0].soak"),
        ({"rollout": {"steps": [{"pods": 0}]}}, "spec: Expected `int` >= 1"),
        ({"rollout": {}}, "spec.rollout: rollout has either steps or pods"),
        ({"rollout": {"steps": [{"soakSeconds": 5}]}}, "spec.rollout.steps[0]: a step has pods, a nodeSelector, or"),
        ({"rollout": {"steps": [{"nodeSelector": {"a b": ""}}]}}, "InvalidSelector: spec.rollout.steps[0].nodeSel"),
        ({"selector": {"matchLabels": {"a b": ""}}}, "InvalidSelector: spec.selector.matchLabels"),
    ],
)
def test_policy_that_is_not_accepted_says_why(checker: Checker, spec: dict[str, Any], problem: str) -> None:
    done = checker.offline(policy(spec), code=1)
    assert f"defensepolicy default/web: not accepted: {problem}" in done.stdout
    assert "Steps of" not in done.stdout
    assert done.stderr.startswith("error: not accepted: default/web; correct what")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ("a: b: c", "is not YAML"),
        ("", "has no object"),
        ({"kind": "Deployment"}, "has Deployment; only DefensePolicy"),
        (" " * (MAX_FILE + 1), f"has more than {MAX_FILE} characters"),
        ("[1]", "has no object; only DefensePolicy"),
        (policy({}, name="A/b"), "has no valid metadata.name"),
        (policy({}, namespace="A/b"), "has no valid metadata.namespace"),
    ],
)
def test_file_that_has_no_policies_is_an_error(checker: Checker, content: object, error: str) -> None:
    assert error in checker.offline(content, code=2).stderr


def test_file_with_several_policies_and_a_list_shows_each(checker: Checker) -> None:
    two = {"kind": "List", "apiVersion": "v1", "items": [policy({}), policy({}, name="api")]}
    text = f"{json.dumps(two)}\n---\n{json.dumps(policy({}, name='db'))}"
    assert checker.offline(text).stdout.count(": accepted") == 3
    missing = call_missing(checker)
    assert "cannot read /nowhere: No such file or directory" in missing.stderr


def call_missing(checker: Checker) -> Done:
    return call(main, "altershield", "policy", "check", "--offline", "-f", "/nowhere", capture=checker._capture)


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        yield cluster


async def test_dry_run_shows_what_the_api_server_refuses_and_stores_nothing(
    cluster: Cluster, checker: Checker, tmp_path: Path
) -> None:
    asked = ("-n", "shop", "--kubeconfig", str(tmp_path / "admin.kubeconfig"))

    async def run(spec: dict[str, Any], code: int = 0) -> str:
        done = await asyncio.to_thread(checker.run, policy(spec), *asked, code=code)
        return done.stdout or done.stderr

    assert "defensepolicy shop/web: accepted\nSteps of a release of 10 pods:" in await run(STEPS)
    both = {"rollout": {"pods": [1], "steps": [{"pods": 1}]}}
    assert "rollout has either steps or pods" in await run(both, code=1)
    assert "not accepted: " in await run({"rollouts": {}}, code=1)
    assert await cluster.all(DEFENSE_POLICIES) == []


def test_policy_shows_when_its_checks_run(checker: Checker) -> None:
    http = {"http": {"url": "https://gate.shop.svc"}}
    phases = ("PreRelease", "PreBatch", "PreBatch", "PostBatch", "PostRelease")
    checks = [{"name": f"c{number}", "phase": phase, **http} for number, phase in enumerate(phases)]
    assert checker.offline(policy({**STEPS, "checks": checks})).stdout.splitlines()[-3:] == [
        "Checks that have to pass before any pod has the version: c0",
        "Checks that have to pass before each step: c1, c2",
        "Checks after all pods have passed: c4",
    ]
    rejected = checker.offline(policy({"checks": checks[:1]}), code=1).stdout
    assert "the check c0: the phase PreRelease needs spec.rollout" in rejected


async def test_policy_is_replayed_against_the_last_releases_of_a_workload(
    cluster: Cluster, checker: Checker, tmp_path: Path
) -> None:
    asked = ("--kubeconfig", str(tmp_path / "admin.kubeconfig"), "--against", "deploy/sleep")

    async def run(spec: dict[str, Any], *more: str) -> Done:
        return await asyncio.to_thread(checker.run, policy(spec, namespace="shop"), *asked, *more)

    async with cluster.reconciler():
        await good_release(cluster)
        await second_release(cluster)
        batches = [each for each in await cluster.all(CHANGE_PODS) if version("v2") in each["metadata"]["name"]]
        await cluster.judge(batches[0], "unpass")
        await until_history(cluster, v1="Success", v2="Suspend")
        steps = {"rollout": {"pods": [1], "soakSeconds": 3600}}
        shown = (await run(steps)).stdout.splitlines()
        at = shown.index("With this policy, if pods, people and equal checks had done the same, the last releases:")
        header, failed, passed = (each.split() for each in shown[at + 1 :])
        assert header == ["NUMBER", "VERSION", "IMAGES", "ENDED", "WOULD", "STEP", "WHY"]
        assert failed[:5] == ["2", version("v2")[:12], "busybox:2", "Suspend", "Suspend"]
        stops = " ".join(failed[5:12])
        assert stops in ("1 of 2, 1 of 2 pods", "2 of 2, 2 of 2 pods"), "either pod may have been the first one"
        assert " ".join(failed[12:]).startswith("it would have failed, if the person had failed it; 2 of 2 pods had")
        assert passed[:6] == ["1", version("v1")[:12], "busybox", "Success", "Pass", "-"]
        assert "all its pods passed, in at least 60m; it took" in " ".join(passed)
        (found,) = json.loads((await run({"observeSeconds": 60}, "-o", "json")).stdout)["items"]
        assert [(each["number"], each["would"], each["why"]) for each in found["releases"]] == [
            (2, "Unknown", "observeSeconds was not set"),
            (1, "Unknown", "observeSeconds was not set"),
        ]


def test_replay_needs_a_cluster_and_one_workload(checker: Checker) -> None:
    assert "leave out --offline" in checker.offline(policy({}), "--against", "deploy/web", code=2).stderr
    assert "names no workload" in checker.run(policy({}), "--against", "deploy", code=2).stderr
