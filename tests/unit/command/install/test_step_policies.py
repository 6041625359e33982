"""Who may promote a release in steps, and that only AlterShield writes how far it has come. No gatekeeper runs."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from altershield.api import names
from altershield.api.released_by import MAX_USER
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.api.rollout import PassedStep, Phase, Rollout, RolloutStatus, Step
from command.install import crds, rbac
from command.install.admission_policy import RESOURCES
from command.install.user_policies import user_policies
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ForbiddenError
from kube_base.resources import CRDS, NAMESPACES
from kube_sandbox.apiserver.server import ApiServer
from tests.support.polling import until
from tests.unit.altershield.views.builders import in_steps

LONG = "u" * 300
STEPS = Rollout(steps=(Step(1), Step(2, approval=True), Step(5)), other_approver=True)
SPACE = "shop"
RECONCILER = names.service_account_user()


class World:
    """Clients of users by name. `ann` and `bob` may approve; `eve` may only write requests."""

    def __init__(self, api: ApiServer, directory: Path, stack: AsyncExitStack) -> None:
        self._api = api
        self._directory = directory
        self._stack = stack
        self.name = ""

    async def client(self, user: str, *groups: str) -> Client:
        file = self._directory / f"{user.replace(':', '-')[:64]}.kubeconfig"
        file.write_text(self._api.kubeconfig(self._api.add_token(user, groups=groups)))
        return await self._stack.enter_async_context(await Client.connect(str(file)))

    async def release(self, rollout: Rollout, status: RolloutStatus, by: str = "ann") -> None:
        """A release of this user."""
        made = in_steps(rollout, status)
        spec = {**msgspec.to_builtins(made.spec), "releasedBy": by}
        own = await self.client(RECONCILER, "system:masters")
        self.name = made.metadata.name
        obj = {
            "apiVersion": CHANGE_WORKLOADS.api_version,
            "kind": CHANGE_WORKLOADS.kind,
            "metadata": {"name": self.name},
            "spec": spec,
        }
        await own.create(CHANGE_WORKLOADS, obj, SPACE)
        await self.move(status)

    async def move(self, status: RolloutStatus) -> None:
        own = await self.client(RECONCILER, "system:masters")
        await self.patch(own, {"rollout": None, "request": None})
        await self.patch(own, {"rollout": msgspec.to_builtins(status)})

    async def patch(self, client: Client, status: dict[str, Any]) -> None:
        await client.patch(CHANGE_WORKLOADS, {"status": status}, self.name, SPACE, subresource="status")

    async def ask(self, user: str, verb: str) -> str:
        """Make a request. Returns why it is refused; empty: it is stored."""
        client = await self.client(user)
        try:
            await self.patch(client, {"request": {"verb": verb, "by": user}})
        except ForbiddenError as error:
            return str(error)
        own = await self.client(RECONCILER, "system:masters")
        await self.patch(own, {"request": None})
        return ""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with ApiServer(tls=False) as api, AsyncExitStack() as stack:
        world = World(api, tmp_path, stack)
        admin = await world.client("admin", "system:masters")
        await admin.create(NAMESPACES, {"metadata": {"name": SPACE}})
        for crd in crds.crds():
            await admin.create(CRDS, crd)
        for role in rbac.user_roles():
            await admin.create(rbac.RESOURCES["ClusterRole"], role)
        for role, users in {"approvals": ("ann", "bob", LONG), "verdicts": ("eve",)}.items():
            await admin.create(rbac.RESOURCES["RoleBinding"], _binding(f"altershield-{role}", users), SPACE)
        for obj in user_policies(RECONCILER):
            await admin.create(RESOURCES[obj["kind"]], obj)
        yield world


def _binding(role: str, users: tuple[str, ...]) -> dict[str, Any]:
    group = "rbac.authorization.k8s.io"
    return {
        "metadata": {"name": role},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": each} for each in users],
    }


def at(step: int, phase: Phase = Phase.SOAKING) -> RolloutStatus:
    return RolloutStatus(phase=phase, step=step, steps=4, pods=step, updated=step, passed=step)


NO_APPROVER = "you may not approve: ask for the ClusterRole altershield-approvals in the namespace shop"
SAME = "you released this version, and its DefensePolicy demands that another user approves it"


async def test_promotion_of_a_step_with_approval_needs_the_verb_approve(world: World) -> None:
    await world.release(msgspec.structs.replace(STEPS, other_approver=False), at(1))
    assert await world.ask("eve", "Promote") == "", "the first step needs no approval"
    assert NO_APPROVER in await world.ask("eve", "PromoteFull"), "it would skip the approval of the second step"
    for phase in (Phase.ROLLING, Phase.SOAKING, Phase.WAITING_FOR_APPROVAL):
        await world.move(at(2, phase))
        assert NO_APPROVER in await world.ask("eve", "Promote"), "it may be carried out in a later phase"
    assert await world.ask("eve", "Hold") == ""
    assert await world.ask("bob", "Promote") == ""
    assert await world.ask("ann", "PromoteFull") == "", "the policy lets the user who released it approve"
    for step in (3, 4):
        await world.move(at(step))
        assert await world.ask("eve", "Promote") == ""
    await world.move(RolloutStatus())
    assert NO_APPROVER in await world.ask("eve", "Promote"), "it may be carried out in any step"


async def test_other_approver_refuses_the_user_who_released_it(world: World) -> None:
    await world.release(STEPS, at(2, Phase.WAITING_FOR_APPROVAL))
    assert SAME in await world.ask("ann", "Promote")
    assert SAME in await world.ask("ann", "PromoteFull")
    assert await world.ask("bob", "Promote") == ""
    await world.move(at(1))
    assert await world.ask("ann", "Promote") == "", "the step has no approval"


async def test_other_approver_refuses_the_user_whose_name_the_gatekeeper_cut(world: World) -> None:
    await world.release(STEPS, at(2, Phase.WAITING_FOR_APPROVAL), by=LONG[:MAX_USER])
    assert SAME in await world.ask(LONG, "Promote")
    assert await world.ask("ann", "Promote") == ""


async def test_short_form_of_steps_needs_no_approval(world: World) -> None:
    await world.release(Rollout(pods=(1, "10%")), at(1, Phase.WAITING_FOR_APPROVAL))
    assert await world.ask("eve", "Promote") == ""
    assert await world.ask("eve", "PromoteFull") == ""


async def test_only_altershield_writes_how_far_a_release_has_come(world: World) -> None:
    await world.release(STEPS, at(2))
    root = await world.client("root", "system:masters")
    passed = msgspec.to_builtins((PassedStep(1, 1),))
    for changed in ({"soakEndTimeUnix": 1}, {"phase": "Done"}, {"passedSteps": passed}, None):
        with pytest.raises(ForbiddenError, match=r"only AlterShield writes status\.rollout"):
            await world.patch(root, {"rollout": changed})
    await world.patch(root, {"updateTime": "now"})
    await world.move(RolloutStatus())
    with pytest.raises(ForbiddenError, match=r"only AlterShield writes status\.rollout"):
        await world.patch(root, {"rollout": {"phase": "Done"}})


async def test_nobody_becomes_another_releaser_by_a_write_of_the_spec(world: World) -> None:
    await world.release(STEPS, at(2))
    root = await world.client("root", "system:masters")
    for operation in (
        {"op": "replace", "path": "/spec/releasedBy", "value": "eve"},
        {"op": "remove", "path": "/spec/releasedBy"},
    ):
        with pytest.raises(ForbiddenError, match=r"only AlterShield writes spec\.releasedBy"):
            await root.patch(CHANGE_WORKLOADS, [operation], world.name, SPACE, type_=PatchType.JSON)


async def test_request_that_is_stored_already_is_not_asked_about_again(world: World) -> None:
    await world.release(STEPS, at(2, Phase.WAITING_FOR_APPROVAL))
    bob, eve = await asyncio.gather(world.client("bob"), world.client("eve"))
    await world.patch(bob, {"request": {"verb": "Promote", "by": "bob"}})
    await world.patch(eve, {"updateTime": "now"})

    async def stored() -> bool:
        found = await eve.get(CHANGE_WORKLOADS, world.name, SPACE)
        return bool(found["status"]["request"]["by"] == "bob")

    await until(stored, "the request of bob", 5)
