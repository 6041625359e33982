"""The writes of a hold, with an API server whose gatekeeper answers or not."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from altershield.api.annotations import ROLLOUT
from altershield.api.json_patch import Operation
from altershield.api.rollout import Rollout, WaitingFor
from altershield.workloads import BY_KIND, held
from altershield.workloads.hold import STEPS, Cause, Hold
from kube_base.access.errors import ConflictError, ForbiddenError, NotFoundError, TooManyRequestsError
from kube_base.resources import DEPLOYMENTS
from reconciler.releases.writes.holds import HoldRefused, HoldWriter
from reconciler.rollout.targets import NewHold

ADAPTER = BY_KIND[DEPLOYMENTS.group_kind]
OWN = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
SPEC: dict[str, Any] = {"replicas": 10, "progressDeadlineSeconds": 600, "strategy": OWN, "template": {"spec": {}}}


def hold(pods: int) -> Hold:
    return Hold(
        "new", (Cause(STEPS, pods=pods),), fields=held.values(ADAPTER, SPEC), rollout=Rollout(pods=(3,)), replicas=10
    )


class Server:
    """The API server, the reader and the writer in one."""

    def __init__(self, *, gatekeeper: bool, pods: int = 1) -> None:
        self.gatekeeper = gatekeeper
        self.refusal: Exception | None = None
        self.written: list[Sequence[Operation]] = []
        known = hold(pods)
        self.raw = {
            "metadata": {"resourceVersion": "1", "annotations": {ROLLOUT: msgspec.json.encode(known).decode()}},
            "spec": held.with_values(SPEC, held.in_force(ADAPTER, known)),
        }

    async def raw_of(self, workload: object) -> Any:
        return self.raw

    async def try_patch(self, informer: object, workload: object, operations: Sequence[Operation]) -> msgspec.Raw:
        annotation = next(each["value"] for each in operations if each["path"].endswith("rollout"))
        known = held.steps({ROLLOUT: annotation})
        assert known is not None
        spec = held.with_values(SPEC, held.in_force(ADAPTER, known)) if self.gatekeeper else self.raw["spec"]
        return msgspec.Raw(json.dumps({"metadata": {}, "spec": spec}).encode())

    async def patch(self, informer: object, workload: object, operations: Sequence[Operation]) -> None:
        self.written.append(operations)

    async def evict(self, metadata: object) -> None:
        if self.refusal is not None:
            raise self.refusal


def writer(server: Server) -> HoldWriter:
    caches = SimpleNamespace(workloads={DEPLOYMENTS.group_kind: None})
    return HoldWriter(caches, server, SimpleNamespace(raw=server.raw_of))  # type: ignore[arg-type]


WORKLOAD: Any = SimpleNamespace(group_kind=DEPLOYMENTS.group_kind)
POD: Any = SimpleNamespace(metadata=None)


async def test_pods_of_a_hold_are_written_if_a_gatekeeper_changes_the_fields() -> None:
    server = Server(gatekeeper=True)
    await writer(server).set(WORKLOAD, NewHold("new", 2, 10, surge=True))
    ((test, annotation),) = server.written
    assert test["op"] == "test"
    known = held.steps({ROLLOUT: annotation["value"]})
    assert known is not None
    assert (known.pods, known.write, known.fields) == (2, 1, held.values(ADAPTER, SPEC))


async def test_nothing_is_written_while_no_gatekeeper_changes_the_fields() -> None:
    """Otherwise the held values of before would be taken for the user's own."""
    server = Server(gatekeeper=False)
    with pytest.raises(HoldRefused) as raised:
        await writer(server).set(WORKLOAD, NewHold("new", 2, 10, surge=True))
    assert (raised.value.waiting, server.written) == (WaitingFor.WRITE, [])


async def test_fields_of_a_later_version_stay_in_the_annotation() -> None:
    server = Server(gatekeeper=True)
    known = json.loads(server.raw["metadata"]["annotations"][ROLLOUT])
    known["rollout"]["steps"] = [{"pods": 1, "later": {"a": [1]}}]
    known["causes"][0]["later"] = 2
    server.raw["metadata"]["annotations"][ROLLOUT] = json.dumps({**known, "later": 3})
    await writer(server).set(WORKLOAD, NewHold("new", 2, 10, surge=False))
    written = json.loads(server.written[0][1]["value"])
    assert (written["later"], written["surge"]) == (3, False)
    assert written["causes"] == [{**known["causes"][0], "pods": 2}]
    assert written["rollout"]["steps"] == known["rollout"]["steps"]


async def test_field_that_was_changed_without_a_gatekeeper_becomes_the_own_value_for_later() -> None:
    server = Server(gatekeeper=True)
    path = "/spec/strategy/rollingUpdate/maxSurge"
    server.raw["spec"] = held.with_values(server.raw["spec"], {path: 4})
    await writer(server).set(WORKLOAD, NewHold("new", 1, 10, surge=True))
    known = held.steps({ROLLOUT: server.written[0][1]["value"]})
    assert known is not None
    assert (known.fields[path], known.strategy[path]) == (4, 1)


async def test_end_of_a_hold_restores_the_own_values_in_one_write() -> None:
    server = Server(gatekeeper=False, pods=3)
    await writer(server).end(WORKLOAD)
    operations = {each["path"]: each for each in server.written[0]}
    assert operations["/spec/strategy"]["value"] == OWN
    assert operations["/spec/progressDeadlineSeconds"]["value"] == 600
    assert operations["/spec/minReadySeconds"]["op"] == "remove"


async def test_refused_eviction_waits_that_of_a_deleted_pod_does_not_and_a_conflict_is_repeated() -> None:
    server = Server(gatekeeper=True)
    for refusal in (TooManyRequestsError("a budget", code=429), ForbiddenError("a policy", code=403)):
        server.refusal = refusal
        with pytest.raises(HoldRefused) as raised:
            await writer(server).evict(POD)
        assert raised.value.waiting is WaitingFor.EVICTION
    server.refusal = NotFoundError("gone", code=404)
    await writer(server).evict(POD)
    server.refusal = ConflictError("changed", code=409)
    with pytest.raises(ConflictError):
        await writer(server).evict(POD)
