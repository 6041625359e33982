"""The user who released a version does not decide about it. No gatekeeper and no reconciler runs."""

import itertools
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from altershield.api import names
from altershield.api.change_pod import ChangePodStatus
from altershield.api.change_workload import ChangeWorkloadStatus
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from altershield.api.workload_requests import Verb
from altershield.releases.duties import DECISIONS
from command.install import crds
from command.install.admission_policy import RESOURCES
from command.install.duties_policies import duties_policies
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ForbiddenError
from kube_base.resources import CRDS, NAMESPACES, Resource
from kube_sandbox.apiserver.server import ApiServer
from tests.unit.altershield.releases.builders import change_pod, release

SPACE = "shop"
RECONCILER = names.service_account_user()
LONG = "u" * 300
REFUSED = "so another user has to decide about it: one with the ClusterRole altershield-verdicts in the namespace shop"


class World:
    def __init__(self, api: ApiServer, directory: Path, stack: AsyncExitStack) -> None:
        self._api = api
        self._directory = directory
        self._stack = stack
        self._numbers = itertools.count()
        self._clients: dict[str, Client] = {}
        self.names: dict[str, str] = {}

    async def client(self, user: str) -> Client:
        if user not in self._clients:
            file = self._directory / f"{next(self._numbers)}.kubeconfig"
            file.write_text(self._api.kubeconfig(self._api.add_token(user, groups=("system:masters",))))
            self._clients[user] = await self._stack.enter_async_context(await Client.connect(str(file)))
        return self._clients[user]

    async def store(self, excluded: str, release_status: Any = None, batch_status: Any = None) -> None:
        """A release and a batch about which this user may not decide."""
        own = await self.client(RECONCILER)
        change, batch = release(), change_pod(1, "web-1", "web-2")
        for resource, made, status in (
            (CHANGE_WORKLOADS, change, release_status),
            (CHANGE_PODS, batch, batch_status),
        ):
            spec = msgspec.to_builtins(made.spec) | ({"notDecidedBy": excluded} if excluded else {})
            head = {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": made.metadata.name}}
            await own.create(resource, {**head, "spec": spec}, SPACE)
            self.names[resource.plural] = made.metadata.name
            if status:
                await self.write(RECONCILER, resource, status)

    async def write(self, user: str, resource: Resource, status: Any) -> str:
        """Patch a status. Returns why it is refused; empty: it is stored."""
        client = await self.client(user)
        patch = {"status": status}
        try:
            await client.patch(resource, patch, self.names[resource.plural], SPACE, subresource="status")
        except ForbiddenError as error:
            return str(error)
        return ""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with ApiServer(tls=False) as api, AsyncExitStack() as stack:
        world = World(api, tmp_path, stack)
        admin = await world.client("admin")
        await admin.create(NAMESPACES, {"metadata": {"name": SPACE}})
        for crd in crds.crds():
            await admin.create(CRDS, crd)
        for obj in duties_policies(RECONCILER):
            await admin.create(RESOURCES[obj["kind"]], obj)
        yield world


@pytest.mark.parametrize("verb", Verb)
async def test_decisions_are_refused_to_the_user_who_released_it_and_the_way_back_is_open(
    world: World, verb: Verb
) -> None:
    await world.store("ann")
    answer = await world.write("ann", CHANGE_WORKLOADS, {"request": {"verb": verb, "by": "ann"}})
    assert (REFUSED in answer) is (verb in DECISIONS), answer
    assert await world.write("bob", CHANGE_WORKLOADS, {"request": {"verb": verb, "by": "bob"}}) == ""


async def test_name_that_the_gatekeeper_cut_is_recognised(world: World) -> None:
    await world.store(LONG[:253])
    request = {"request": {"verb": "Approve", "by": "x"}}
    assert REFUSED in await world.write(LONG, CHANGE_WORKLOADS, request)
    assert await world.write(LONG[:200], CHANGE_WORKLOADS, request) == ""


async def test_without_an_excluded_user_everybody_decides(world: World) -> None:
    await world.store("")
    assert await world.write("ann", CHANGE_WORKLOADS, {"request": {"verb": "Approve", "by": "ann"}}) == ""
    assert await world.write("ann", CHANGE_WORKLOADS, {"resumption": {"sinceUnix": 1}}) == ""
    assert await world.write("ann", CHANGE_PODS, {"podResults": [{"pod": "web-1", "verdict": "pass"}]}) == ""


async def test_request_of_another_user_stays_and_the_releaser_writes_beside_it(world: World) -> None:
    await world.store("ann")
    assert await world.write("bob", CHANGE_WORKLOADS, {"request": {"verb": "Approve", "by": "bob"}}) == ""
    assert await world.write("ann", CHANGE_WORKLOADS, {"status": "Rollback", "rollbackTo": "v1"}) == ""
    changed = {"request": {"verb": "Approve", "by": "bob", "reason": "other"}}
    assert REFUSED in await world.write("ann", CHANGE_WORKLOADS, changed)


async def test_user_who_released_it_writes_no_state_but_rollback(world: World) -> None:
    await world.store("ann", {"status": "Suspend"})
    for state in ("Success", "Running", "", None):
        assert REFUSED in await world.write("ann", CHANGE_WORKLOADS, {"status": state})
    assert await world.write("ann", CHANGE_WORKLOADS, {"status": "Rollback"}) == ""


VALUES: dict[type[msgspec.Struct], dict[str, Any]] = {
    ChangeWorkloadStatus: {
        **{each: [{"pod": "web-9"}] for each in ("defensePreparingPods", "defenseCheckingPods")},
        **{each: [{"pod": "web-9"}] for each in ("defenseCheckPassPods", "defenseCheckFailPods", "downPods")},
        **{each: {"kind": "x"} for each in ("source", "previous", "rollbackTarget")},
        "rollbackRequested": True,
        **{each: ["x"] for each in ("restoredPaths", "notified")},
        "settling": {"sinceUnix": 1},
        "resumption": {"sinceUnix": 1},
        "pause": {"endTimeUnix": 1},
        "rollout": {"step": 1},
        "actions": [{"verb": "Approve"}],
        "announcements": [{"uid": "x", "reason": "x", "message": "x"}],
        "conditions": [
            {
                "type": "Verified",
                "status": "True",
                "reason": "X",
                "message": "",
                "lastTransitionTime": "2026-08-21T07:29:49Z",
            }
        ],
    },
    ChangePodStatus: {
        "status": "PostFinish",
        "checks": [{"name": "x", "phase": "Post", "state": "Passed"}],
        "conditions": [],
    },
}
VALUES[ChangePodStatus]["conditions"] = VALUES[ChangeWorkloadStatus]["conditions"]
OPEN = {ChangeWorkloadStatus: ("request", "status", "rollbackTo"), ChangePodStatus: ("podResults", "message")}


def value(type_: type[msgspec.Struct], field: str) -> Any:
    if field in VALUES[type_]:
        return VALUES[type_][field]
    number = field.endswith(("Unix", "Threshold", "Batches", "Generation")) or field in ("reached", "replicas")
    return 7 if number else "x"


@pytest.mark.parametrize(
    ("type_", "field"),
    [(type_, each) for type_, but in OPEN.items() for each in type_.__struct_encode_fields__ if each not in but],
)
async def test_user_who_released_it_sets_changes_and_removes_no_other_field(
    world: World, type_: type[msgspec.Struct], field: str
) -> None:
    resource = CHANGE_WORKLOADS if type_ is ChangeWorkloadStatus else CHANGE_PODS
    await world.store("ann")
    wanted = {field: value(type_, field)}
    assert REFUSED in await world.write("ann", resource, wanted), "set"
    assert await world.write("bob", resource, wanted) == ""
    found = await (await world.client("bob")).get(resource, world.names[resource.plural], SPACE)
    assert field in found["status"], "the schema has it"
    assert await world.write("ann", resource, wanted) == "", "as it is"
    assert REFUSED in await world.write("ann", resource, {field: None}), "removed"


def results(**verdicts: str) -> dict[str, Any]:
    return {"podResults": [{"pod": pod.replace("_", "-"), "verdict": each} for pod, each in verdicts.items()]}


async def test_user_who_released_it_passes_no_pod_and_removes_no_failure(world: World) -> None:
    await world.store("ann", batch_status={**results(web_1="unpass", web_2="pass"), "message": "PostFinish"})
    for refused in (
        results(web_1="pass", web_2="pass"),
        results(web_2="pass"),
        results(web_1="", web_2="pass"),
        results(web_1="unpass", web_2="pass", web_3="pass"),
        results(web_9="unpass", web_2="pass"),
        results(web_2="unpass"),
        {"podResults": [{"pod": "web-1", "uid": "other", "verdict": "unpass"}, {"pod": "web-2", "verdict": "pass"}]},
        {"podResults": None},
    ):
        assert REFUSED in await world.write("ann", CHANGE_PODS, refused), refused
    for stored in (
        results(web_1="unpass", web_2="pass"),
        {"podResults": [{"pod": "web-1", "verdict": "unpass", "message": "m"}, {"pod": "web-2", "verdict": "pass"}]},
        {**results(web_1="unpass", web_2="unpass"), "message": "PostFinish"},
    ):
        assert await world.write("ann", CHANGE_PODS, stored) == "", stored
    assert await world.write("bob", CHANGE_PODS, results(web_1="pass", web_2="pass")) == ""


@pytest.mark.parametrize("resource", [CHANGE_WORKLOADS, CHANGE_PODS])
async def test_nobody_but_the_reconciler_changes_who_may_not_decide(world: World, resource: Resource) -> None:
    await world.store("ann")
    operations: list[dict[str, Any]] = [
        {"op": "replace", "path": "/spec/notDecidedBy", "value": "bob"},
        {"op": "remove", "path": "/spec/notDecidedBy"},
    ]
    for user in ("ann", "bob"):
        client = await world.client(user)
        for each in operations:
            with pytest.raises(ForbiddenError, match=r"only AlterShield writes spec\.notDecidedBy"):
                await client.patch(resource, [each], world.names[resource.plural], SPACE, type_=PatchType.JSON)
    own = await world.client(RECONCILER)
    await own.patch(resource, operations[:1], world.names[resource.plural], SPACE, type_=PatchType.JSON)
