"""Each command prints with `-o json` and `-o yaml` what its schema says: on the API server of the sandbox."""

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from altershield.api import labels
from altershield.api.resources import (
    API_VERSION,
    CHANGE_PODS,
    DEFENSE_POLICIES,
    FIELD_GUARDS,
    POD_DELETION_FLOW_CONTROLS,
    POD_UNAVAILABLE_BUDGETS,
    RELEASE_LIMITS,
    RELEASE_WINDOWS,
)
from altershield.releases import history
from altershield.views.document import data
from altershield.views.releases import objects
from command import main
from command.app import command_line
from command.check.command import carry_out
from command.check.waiting import CheckFailedError
from command.install.crds import crds
from command.output import Format
from docs.pages.schemas import schema
from docs.pages.views import DOCUMENTS, OBJECTS
from kube_base.meta import OwnerReference
from kube_base.resources import DEPLOYMENTS, NAMESPACES, PODS, Resource
from tests.fault.reconciler_cluster import running_cluster
from tests.support.processes import call
from tests.support.stub_api import serving
from tests.unit.altershield.views.builders import V1
from tests.unit.altershield.views.why.explained import explained
from tests.unit.altershield.views.why.states import STATES
from tests.unit.command.status.stepped import World
from tests.unit.reconciler.notifications.receiving import Inbox

SCHEMAS = {each.__name__: Draft202012Validator(schema(each)) for each in DOCUMENTS}
CRD_SCHEMAS = {
    crd["spec"]["names"]["kind"]: Draft202012Validator(
        {
            **crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
            "required": ["apiVersion", "kind", "metadata", "spec"],
        }
    )
    for crd in crds()
}


def demand_valid(found: dict[str, Any], kind: str) -> None:
    """`kind`: of the document, or of the object of the API."""
    assert found["kind"] == kind, found
    validator = SCHEMAS.get(kind) or CRD_SCHEMAS.get(kind)
    if validator is not None:
        problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(found)]
        assert problems == [], found


@pytest.fixture
async def world(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> AsyncIterator[World]:
    """A Deployment `web` with a release in steps, and an object of each kind that commands show."""
    async with running_cluster(tmp_path) as cluster:
        await cluster.go_to("shop")
        made = World(cluster, tmp_path / "admin.kubeconfig", capsys)
        await made.release()
        workload = await cluster.admin.get(DEPLOYMENTS, "web", "shop")
        for resource, name, spec in (
            (RELEASE_WINDOWS, "nights", {"type": "Deny", "reason": "nights", "schedules": [NIGHTS]}),
            (RELEASE_LIMITS, "fleet", {"concurrent": 5}),
            (FIELD_GUARDS, "memory", {"rules": [{"name": "memory", "paths": ["spec.containers[*].resources"]}]}),
            (POD_UNAVAILABLE_BUDGETS, "web", {"selector": {"matchLabels": {"app": "web"}}, "maxUnavailable": 1}),
            (POD_DELETION_FLOW_CONTROLS, "guard", {"limitRules": [LIMIT], "breaker": {"mode": "Manual"}}),
        ):
            await create(made, resource, name, spec)
        owner = OwnerReference("Deployment", "web", workload["metadata"]["uid"], "apps/v1")
        record = history.annotations(history.Record(number=1, state="Success"), None)
        entry = history.manifest(owner, "shop", V1, workload["spec"]["template"], record, 1)
        await cluster.admin.create(history.RESOURCE, entry, "shop")
        pod = {"metadata": {"name": "web-1", "labels": {"app": "web"}}, "spec": workload["spec"]["template"]["spec"]}
        await cluster.admin.create(PODS, {"apiVersion": "v1", "kind": "Pod", **pod}, "shop")
        batch = {"changeWorkloadId": made.name, "createTime": "", "createTimeUnix": 1, "podInfos": [{"pod": "web-1"}]}
        await create(made, CHANGE_PODS, f"{made.name}--x--1", batch)
        yield made


LIMIT = {"interval": "10m", "limit": 100}
NIGHTS = {"weekly": {"days": ["Mon"], "from": "20:00", "to": "06:00"}}


async def create(world: World, resource: Resource, name: str, spec: dict[str, Any]) -> None:
    obj = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}
    await world.cluster.admin.create(resource, obj, "shop" if resource.namespaced else "")


COMMANDS: list[tuple[str, str, int, str]] = [
    # the command of the reference; the arguments, the exit code, and the kind that it prints
    ("why TYPE/NAME", "why deploy/web", 4, "ReleaseExplanation"),
    ("why pod/NAME", "why pod/web-1", 0, "PodExplanation"),
    ("gates", "gates", 0, "GateList"),
    ("gates TYPE/NAME", "gates deploy/web", 0, "ReleaseAnswerList"),
    ("gates -f FILE", "gates -f web.yaml", 0, "ReleaseAnswerList"),
    ("wait TYPE/NAME --for=open", "wait deploy/web --for=open", 0, "ReleaseAnswerList"),
    ("calendar", "calendar", 0, "GateTimeList"),
    ("budgets", "budgets", 0, "BudgetList"),
    ("budgets NAME", "budgets web", 3, "Budget"),
    ("protect", "protect deploy/web", 0, "Deployment"),
    ("protected", "protected", 0, "ProtectedObjectList"),
    ("unprotect", "unprotect deploy/web", 0, "Deployment"),
    ("report", "report", 0, "OutcomeReport"),
    ("policy check -f FILE", "policy check -f policy.yaml", 1, "PolicyCheckList"),
    ("status", "status", 4, "List"),
    ("wait TYPE/NAME", "wait deploy/web --for=verified", 4, "List"),
    ("history", "history deploy/web", 0, "List"),
    ("history --version VERSION", f"history deploy/web --version {V1}", 0, ""),
    ("verdict", "verdict web-1 pass", 0, "ChangePod"),
    ("freeze", "freeze sale-FORMAT --reason incident", 0, "ReleaseFreeze"),
    ("unfreeze", "unfreeze sale-FORMAT", 0, "ReleaseFreeze"),
    ("override", "override deploy/web --reason incident-number-7", 0, "ReleaseOverride"),
    ("breaker status", "breaker status", 0, "List"),
    ("breaker open", "breaker open guard", 0, "PodDeletionFlowControl"),
    ("breaker reset", "breaker reset guard", 0, "PodDeletionFlowControl"),
    *(
        (verb, f"{verb} deploy/web", 0, "ChangeWorkload")
        for verb in ("approve", "resume", "repair", "retry", "rollback", "promote", "hold")
    ),
]
ELSEWHERE = {"check", "notify test -f FILE"}
"""Those that other tests of this file run."""


def document(shown: str, output: str) -> dict[str, Any]:
    found = json.loads(shown) if output == "json" else yaml.safe_load(shown)
    assert isinstance(found, dict)
    return found


def with_files(arguments: str, directory: Path) -> list[str]:
    return [str(directory / each) if each.endswith(".yaml") else each for each in arguments.split()]


async def test_each_command_prints_what_its_schema_says(world: World, tmp_path: Path) -> None:
    workload = await world.cluster.admin.get(DEPLOYMENTS, "web", "shop")
    manifest = {key: workload[key] for key in ("apiVersion", "kind", "spec")} | {"metadata": {"name": "web"}}
    (tmp_path / "web.yaml").write_text(json.dumps(manifest))
    policy = {"apiVersion": API_VERSION, "kind": DEFENSE_POLICIES.kind, "metadata": {"name": "web"}}
    steps = {"rollout": {"steps": [{"pods": 1}, {"nodeSelector": {"pool": "canary"}}]}}
    wrong = {**policy, "spec": {"selector": {"matchLabels": {"a b": ""}}}}
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump_all([{**policy, "spec": steps}, wrong]))
    for name, arguments, code, kind in COMMANDS:
        for output in ("json",) if name == "override" else ("json", "yaml"):  # its name has the second
            asks = kind == "ChangeWorkload"
            answer = asyncio.create_task(world.request()) if asks else None
            more = ["--timeout=100ms"] if arguments.endswith("--for=verified") else []
            own = with_files(arguments.replace("FORMAT", output), tmp_path)
            namespaced = "breaker" not in name
            done = await world.run(*own, *more, "-o", output, code=code, namespaced=namespaced)
            if answer is not None:
                await answer
            found = document(done.stdout, output)
            if kind == "List":
                assert found["apiVersion"] == "v1"
                assert found["items"], name
                for each in found["items"]:
                    demand_valid(each, each["kind"])
            elif kind:
                demand_valid(found, kind)
            else:
                assert found["spec"]["containers"]


def test_test_knows_all_commands_with_the_option() -> None:
    """And so does the page about what commands print."""
    listed = {each for commands in (*DOCUMENTS.values(), *OBJECTS) for each in commands}
    assert {name for name, *_ in COMMANDS} | ELSEWHERE == listed
    made = command_line()
    with_option = set()
    groups = [("", made.registered_commands)]
    groups += [
        (f"{each.name} ", each.typer_instance.registered_commands)
        for each in made.registered_groups
        if each.typer_instance is not None
    ]
    for prefix, commands in groups:
        for each in commands:
            if each.callback is not None and "output" in inspect.signature(each.callback).parameters:
                with_option.add(prefix + (each.name or each.callback.__name__))
    own = {each.split(" TYPE")[0].split(" -")[0].split(" pod/")[0].split(" NAME")[0] for each in listed}
    assert own == with_option - {"sandbox"}


async def test_notify_test_prints_what_its_schema_says(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with Inbox().serving() as inbox:
        url = f"{inbox.url}/secret"
        receivers = [{"name": name, "type": "slack", "url": url, "events": ["ungated"]} for name in ("a", "b")]
        (file := tmp_path / "r.yaml").write_text(json.dumps({"receivers": receivers}))
        inbox.statuses = [403]
        arguments = ("notify", "test", "--file", str(file), "-o", "json")
        done = await asyncio.to_thread(call, main, "altershield", *arguments, capture=capsys)
    found = json.loads(done.stdout)
    demand_valid(found, "NotificationTestList")
    assert sorted(bool(each["problem"]) for each in found["items"]) == [False, True]
    assert done.returncode == 1


class Stub:
    """Steps of the check that pass, or fail at the verdict."""

    def __init__(self, *, fails: bool) -> None:
        self._fails = fails

    @contextlib.asynccontextmanager
    async def cleaning_up(self) -> AsyncIterator[None]:
        yield

    async def admitted(self) -> str:
        return V1

    async def verified(self, version: str) -> str:
        return "altershield-check-1"

    async def suspended(self, version: str) -> str:
        if self._fails:
            raise CheckFailedError("the workload is not suspended within 30 s")
        return "1700000000"

    async def denied(self) -> str:
        return "deployment altershield-check is suspended"

    async def collected(self, version: str) -> None:
        return


@pytest.mark.parametrize("fails", [False, True])
async def test_check_prints_what_its_schema_says(*, fails: bool, capsys: pytest.CaptureFixture[str]) -> None:
    async with serving() as (api, client):
        await api.put(NAMESPACES, {"metadata": {"name": "shop", "labels": {labels.GOVERNED: labels.GOVERNED_VALUE}}})
        steps: Any = Stub(fails=fails)
        with pytest.raises(CheckFailedError) if fails else contextlib.nullcontext():
            await carry_out(client, steps, "shop", output=Format.JSON)
    shown = capsys.readouterr()
    found = json.loads(shown.out)
    demand_valid(found, "InstallationCheck")
    names = ["admitted", "verified", "restricted", *(() if fails else ("suspended", "denied", "cleaned up"))]
    assert [each["name"] for each in found["steps"]] == names
    assert [each["name"] for each in found["steps"] if not each["tested"]] == ["restricted"]
    assert bool(found["problem"]) is fails
    assert "admitted: " in shown.err


@pytest.mark.parametrize("state", STATES)
def test_explanation_of_each_state_is_as_its_schema_says(state: str) -> None:
    demand_valid(json.loads(objects.to_json(data(explained(STATES[state])))), "ReleaseExplanation")
