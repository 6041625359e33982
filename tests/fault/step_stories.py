"""Releases in steps, with assertions that must hold whatever happens to the reconciler. A gatekeeper runs."""

import collections
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import msgspec

from altershield.api import labels
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEFENSE_POLICIES
from altershield.api.rollout import Phase
from altershield.rollout.steps import next_step, step_pods
from altershield.workloads import change_workload_name
from altershield.workloads.applied import OWN_MANAGER
from altershield.workloads.held import steps
from kube_base.access.client import PatchType
from kube_base.access.errors import NotFoundError
from kube_base.resources import EVENTS, PODS
from kube_sandbox.apiserver.storage.store import Snapshot, Store
from tests.fault.reconciler_cluster import Cluster, Object
from tests.support import workloads

NAME = "app"
_KUBECTL = {"fieldManager": "kubectl"}
REPLICAS = 4
"""Of a DaemonSet: 3, one on each node."""

_OWN: dict[str, Object] = {
    "Deployment": {
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
        "progressDeadlineSeconds": 300,
        "revisionHistoryLimit": 10,
    },
    "StatefulSet": {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "podManagementPolicy": "OrderedReady",
        "revisionHistoryLimit": 10,
        "serviceName": "",
    },
    "DaemonSet": {
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
        "revisionHistoryLimit": 10,
    },
}
"""The user's own spec, without the selector, the replicas and the template."""


class Held:
    """The workload of a story. Its versions have the numbers 1, 2 …, which are the tags of their image."""

    def __init__(self, cluster: Cluster, kind: str) -> None:
        self.cluster, self.kind = cluster, kind
        self.adapter = workloads.BY_NAME[kind]
        self.resource = self.adapter.resource

    async def release(self, number: int, **spec: Any) -> None:
        """Create the workload, or change its template."""
        template = workloads.template(NAME, f"busybox:{number}", terminationGracePeriodSeconds=0)
        try:
            await self.read()
        except NotFoundError:
            made = workloads.manifest(
                self.kind, NAME, "busybox", replicas=REPLICAS, **{**_OWN[self.kind], "template": template}
            )
            await self.cluster.admin.request(
                "POST", self.resource.path(self.cluster.namespace), query=_KUBECTL, body=made
            )
            return
        await self.patch({"spec": {"template": template, **spec}})

    async def read(self) -> Object:
        found: Object = await self.cluster.admin.get(self.resource, NAME, self.cluster.namespace)
        return found

    async def patch(self, patch: Object) -> None:
        path = self.resource.path(self.cluster.namespace, NAME)
        await self.cluster.admin.request("PATCH", path, query=_KUBECTL, body=patch, content_type=PatchType.STRATEGIC)

    async def version(self, number: int) -> str:
        """The version label of a version."""
        raw = await self.read()
        raw["spec"]["template"]["spec"]["containers"][0]["image"] = f"busybox:{number}"
        return self.adapter.read(msgspec.json.encode(raw)).fingerprint

    async def status(self, number: int) -> Object:
        """The status of the ChangeWorkload; empty without one."""
        name = change_workload_name(self.resource.group_kind, NAME, await self.version(number))
        found = await self.cluster.get(CHANGE_WORKLOADS, name)
        return found.get("status", {}) if found is not None else {}

    async def until_state(self, number: int, state: str) -> None:
        async def met() -> bool:
            return (await self.status(number)).get("status") == state

        await self.cluster.until(met, f"the state {state} of version {number}")

    async def until_phase(self, number: int, phase: Phase, step: int) -> None:
        async def met() -> bool:
            found = (await self.status(number)).get("rollout", {})
            return (found.get("phase"), found.get("step")) == (phase, step)

        await self.cluster.until(met, f"{phase} of step {step} of version {number}")

    async def pods(self) -> dict[int, int]:
        """How many pods have which version."""
        found = [each for each in await self.cluster.all(PODS) if "deletionTimestamp" not in each["metadata"]]
        return dict(collections.Counter(int(_image(each["spec"])[-1]) for each in found))

    async def until_pods(self, **expected: int) -> None:
        """Wait until so many pods have the versions v1, v2 …, and none another."""
        wanted = {int(name[1:]): count for name, count in expected.items()}

        async def met() -> bool:
            return await self.pods() == wanted

        await self.cluster.until(met, f"the pods {wanted}")

    async def ask(self, number: int, verb: str) -> None:
        """Ask for it as a person does."""
        name = change_workload_name(self.resource.group_kind, NAME, await self.version(number))
        await self.cluster.set_status(CHANGE_WORKLOADS, name, {"request": {"verb": verb, "by": "alice"}})

    async def fail(self, number: int) -> None:
        """A person fails a pod of the version."""
        version = await self.version(number)
        batches = [each for each in await self.cluster.all(CHANGE_PODS) if version in each["metadata"]["name"]]
        await self.cluster.judge(batches[0], "unpass")

    async def until_own_spec(self) -> None:
        """Wait until the workload has the user's own spec, and AlterShield owns none of it."""

        async def met() -> bool:
            raw = await self.read()
            own = [each for each in raw["metadata"]["managedFields"] if each["manager"] == OWN_MANAGER]
            held = steps(raw["metadata"].get("annotations")) is not None
            return not held and not any("f:spec" in each["fieldsV1"] for each in own)

        await self.cluster.until(met, "the end of the hold")
        spec = (await self.read())["spec"]
        own = {key: value for key, value in spec.items() if key not in ("replicas", "selector", "template")}
        assert own == _OWN[self.kind]


Chapter = Callable[[Held], Coroutine[None, None, None]]


async def in_steps(held: Held, *, on_failure: str = "suspend", approval: bool = False) -> None:
    """A policy with steps of one pod, of half of the pods, which are two of three too, and of all."""
    second = {"pods": "50%", "soakSeconds": 1, "approval": approval}
    rollout = {"steps": [{"pods": 1, "soakSeconds": 1}, second]}
    obj = {
        "apiVersion": DEFENSE_POLICIES.api_version,
        "kind": DEFENSE_POLICIES.kind,
        "metadata": {"name": "own"},
        "spec": {"onFailure": on_failure, "rollout": rollout},
    }
    cluster = held.cluster
    await cluster.admin.create(DEFENSE_POLICIES, obj, cluster.namespace)
    await cluster.until_condition(DEFENSE_POLICIES, "own", "Accepted", status="True")


async def with_approval(held: Held) -> None:
    await in_steps(held, approval=True)


async def with_rollback(held: Held) -> None:
    await in_steps(held, on_failure="rollback", approval=True)


async def first_version(held: Held) -> None:
    """The first version of a workload is not released in steps."""
    await held.release(1)
    await held.until_state(1, "Success")


async def second_version(held: Held) -> None:
    """After the first one: one pod, two, all."""
    await held.release(2)
    await done(held)


async def done(held: Held) -> None:
    await held.until_state(2, "Success")
    found = (await held.status(2))["rollout"]
    assert found["phase"] == Phase.DONE
    replicas = 3 if held.kind == "DaemonSet" else (await held.read())["spec"]["replicas"]
    assert [each["step"] for each in found["passedSteps"]] == [1, 2, 3]
    await held.until_pods(v2=replicas)
    await held.until_own_spec()


async def second_version_waits(held: Held) -> None:
    """After the first one, with approval: two pods of four have the second version."""
    await held.release(2)
    await held.until_phase(2, Phase.WAITING_FOR_APPROVAL, 2)
    assert await held.pods() == {1: 3, 2: 2}


async def stopped(held: Held) -> None:
    """A failure while the second version waits."""
    await held.fail(2)
    await held.until_state(2, "Suspend")
    await held.until_phase(2, Phase.STOPPED, 2)

    async def met() -> bool:
        return labels.SUSPEND in (await held.read())["metadata"]["labels"]

    await held.cluster.until(met, "the suspend label")
    assert await held.pods() == {1: 3, 2: 2}


async def rolled_back(held: Held) -> None:
    """A failure while the second version waits, with `onFailure: rollback`."""
    await held.fail(2)
    await held.until_state(2, "Failed")
    await gone_back(held)


async def base_again(held: Held) -> None:
    """The first version is released again while the second one waits."""
    await held.release(1)
    await gone_back(held)


async def gone_back(held: Held) -> None:
    await held.until_pods(v1=4)
    await held.until_state(1, "Success")
    await held.until_own_spec()

    async def aborted() -> bool:
        found = await held.status(2)  # empty if the ChangeWorkload was deleted after the success of the first version
        return not found or found["rollout"]["phase"] == Phase.ABORTED

    await held.cluster.until(aborted, "the end of the second version")


async def third_version(held: Held) -> None:
    """Another version is released while the second one waits."""
    await held.release(3)
    await held.until_phase(3, Phase.WAITING_FOR_APPROVAL, 2)
    await held.until_pods(v1=3, v3=2)
    await held.until_phase(2, Phase.ABORTED, 2)
    known = steps((await held.read())["metadata"]["annotations"])
    assert known is not None
    assert known.base == await held.version(1)
    assert known.fields["/spec/strategy/rollingUpdate/maxSurge"] == 1


async def promoted(held: Held) -> None:
    """A person promotes the second version, which waits."""
    await held.ask(2, "Promote")
    await done(held)


async def held_by_a_person(held: Held) -> None:
    await held.ask(2, "Hold")

    async def met() -> bool:
        return (await held.status(2))["rollout"].get("heldBy") == "alice"

    await held.cluster.until(met, "a person's hold")
    assert await held.pods() == {1: 3, 2: 2}


async def scaled(held: Held) -> None:
    """The workload is scaled while the second version waits. A further version has its share of the new pods."""
    await held.patch({"spec": {"replicas": 8}})

    async def met() -> bool:
        known = steps((await held.read())["metadata"]["annotations"])
        found = await held.pods()
        return known is not None and known.replicas == 8 and sum(found.values()) >= 8

    await held.cluster.until(met, "the hold of eight replicas")
    assert (await held.pods())[1] >= 3


async def let_go(held: Held) -> None:
    """The setting `rollout` is switched off while the second version waits."""
    await held.cluster.setting("rollout", {"type": "isRollout", "enable": False})
    await held.until_state(2, "Success")
    await held.until_pods(v2=4)
    await held.until_own_spec()


def _image(spec: Object) -> str:
    return str(spec["containers"][0]["image"])


STORIES: tuple[tuple[str, tuple[Chapter, ...]], ...] = (
    ("Deployment", (in_steps, first_version, second_version)),
    ("Deployment", (with_approval, first_version, second_version_waits, stopped)),
    ("Deployment", (with_rollback, first_version, second_version_waits, rolled_back)),
    ("Deployment", (with_approval, first_version, second_version_waits, base_again)),
    ("Deployment", (with_approval, first_version, second_version_waits, third_version)),
    ("Deployment", (with_approval, first_version, second_version_waits, scaled)),
    ("Deployment", (with_approval, first_version, second_version_waits, held_by_a_person)),
    ("Deployment", (with_approval, first_version, second_version_waits, promoted)),
    ("Deployment", (with_approval, first_version, second_version_waits, let_go)),
    ("StatefulSet", (in_steps, first_version, second_version)),
    ("DaemonSet", (in_steps, first_version, second_version)),
)


async def prepared(cluster: Cluster, kind: str, before: Sequence[Chapter]) -> Snapshot:
    """The storage after these chapters."""
    await cluster.go_to("told")
    async with cluster.reconciler(start_timeout=30.0):
        for chapter in before:
            await chapter(Held(cluster, kind))
    return cluster.snapshot()


_STEPS = {"StepStarted": 3, "StepPassed": 3, "StepsFinished": 1}
_SECOND_STEP = {"StepStarted": 1, "StepPassed": 2, "StepsFinished": 1}

EVENTS_OF: dict[Chapter, dict[str, int]] = {
    second_version: _STEPS,
    stopped: {"ReleaseSuspended": 1},
    rolled_back: {"RollbackStarted": 1, "RolledBack": 1},
    base_again: {},
    third_version: {"StepStarted": 1, "StepHeld": 1},
    scaled: {},
    held_by_a_person: {"RequestCarriedOut": 1, "StepHeld": 1},
    promoted: {**_SECOND_STEP, "RequestCarriedOut": 1},
    let_go: {"StepsEscaped": 1, "StepPassed": 1, "StepsFinished": 1},
}
"""The reasons of the Events that the last chapters announce, with their number."""


async def reasons(cluster: Cluster) -> collections.Counter[str]:
    """The reasons of AlterShield's Events, with their number. None is told twice."""
    found = [each for each in await cluster.all(EVENTS) if each["source"]["component"] == "altershield"]
    assert all(each["count"] == 1 for each in found)
    return collections.Counter(each["reason"] for each in found)


async def told(held: Held, chapter: Chapter) -> None:
    """Tell the chapter, and wait for its Events."""
    before = await reasons(held.cluster)
    await chapter(held)
    new = collections.Counter[str]()

    async def met() -> bool:
        new.clear()
        new.update(await reasons(held.cluster) - before)
        return new == EVENTS_OF[chapter]

    try:
        await held.cluster.until(met, f"the Events {EVENTS_OF[chapter]}")
    except AssertionError as error:
        error.add_note(f"the Events are {new}")
        raise


def excess(store: Store, namespace: str, kind: str) -> str:
    """Which pods a held version has more than its step allows; empty: none."""
    resource = workloads.BY_NAME[kind].resource
    for raw in store.list(resource.group, resource.plural, namespace):
        known = steps(raw["metadata"].get("annotations"))
        if known is None or known.rollout is None:
            continue
        own = [
            each.get("status", {}).get("rollout", {})
            for each in store.list(CHANGE_WORKLOADS.group, CHANGE_WORKLOADS.plural, namespace)
            if each["metadata"]["labels"][labels.VERSION] == known.version
        ]
        step = (own[0].get("step") if own else 0) or next_step(known.rollout, 0, known.replicas)
        most = max(step_pods(known.rollout, step, known.replicas), known.at_least)
        pods = [
            each["metadata"]["name"]
            for each in store.list(PODS.group, PODS.plural, namespace)
            if each["metadata"]["labels"].get(labels.VERSION) == known.version
            and "deletionTimestamp" not in each["metadata"]
        ]
        if len(pods) > most:
            return f"{len(pods)} pods have version {known.version}, and step {step} has {most}"
    return ""
