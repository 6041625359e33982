"""A request for a rollback while the caches are behind, and what is written."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from altershield.api.change_workload import ChangeWorkloadStatus, SourceRef, WorkloadState
from altershield.api.condition_types import ConditionType
from altershield.api.meta import Condition
from kube_base.access.errors import ConflictError, ForbiddenError, InvalidError, KubernetesError, UnreachableError
from reconciler.cluster.caches import Caches
from reconciler.cluster.release import Release
from reconciler.endpoints import rollbacks
from reconciler.endpoints.endpoint_errors import EndpointError
from reconciler.endpoints.rollbacks import Requested, Rollbacks
from tests.support.workloads import BY_NAME
from tests.unit.altershield.releases.builders import V1, V2, V3, workload
from tests.unit.reconciler.filled import empty_caches, namespace, newer, put, release

DEPLOYMENTS = BY_NAME["Deployment"]


class Writer:
    """Keeps what is written, after the errors that a test orders."""

    def __init__(self) -> None:
        self.errors: list[KubernetesError] = []
        self.written: list[ChangeWorkloadStatus] = []

    async def save_release(self, release: Release, status: ChangeWorkloadStatus, *, lists: bool) -> Release:
        assert not lists
        if self.errors:
            raise self.errors.pop(0)
        self.written.append(status)
        return release


@pytest.fixture
async def caches(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Caches]:
    """Filled caches with a Deployment at V2."""
    monkeypatch.setattr(rollbacks, "_PAUSE_SECONDS", 0)
    async with empty_caches() as caches:
        for informer in caches.informers:
            informer._reflector.synced.set()
        put(caches, namespace(), workload(V2), release(V2))
        yield caches


@pytest.fixture
def writer() -> Writer:
    return Writer()


async def ask(caches: Caches, writer: Any, to: str = "") -> Requested:
    return await Rollbacks(caches, writer).request(DEPLOYMENTS, "default", "sleep", to)


@pytest.mark.parametrize("to", ["", V1])
@pytest.mark.parametrize("before", ["", "sleep-old"])
async def test_state_and_target_are_written(caches: Caches, writer: Writer, to: str, before: str) -> None:
    """A target that an earlier request left is replaced."""
    put(caches, newer(release(V2, status=ChangeWorkloadStatus(status=WorkloadState.SUSPEND, rollback_to=before))))
    answer = await ask(caches, writer, to)
    assert (answer.version, answer.rollback_to, answer.message) == (V2, to, "requested")
    assert [(each.status, each.rollback_to) for each in writer.written] == [("Rollback", to)]


async def test_conflict_is_repeated_on_newer_caches(caches: Caches, writer: Writer) -> None:
    writer.errors = [ConflictError("changed"), ConflictError("changed")]
    assert (await ask(caches, writer)).message == "requested"
    assert len(writer.written) == 1
    writer.errors = [ConflictError("changed")] * 9
    with pytest.raises(EndpointError) as caught:
        await ask(caches, writer)
    assert caught.value.code == 409


@pytest.mark.parametrize(
    ("error", "code"), [(UnreachableError("gone"), 503), (ForbiddenError("no"), 503), (InvalidError("bad"), 400)]
)
async def test_errors_of_the_api_server_are_not_repeated(
    caches: Caches, writer: Writer, error: KubernetesError, code: int
) -> None:
    writer.errors = [error]
    with pytest.raises(EndpointError) as caught:
        await ask(caches, writer)
    assert (caught.value.code, writer.written) == (code, [])


async def test_version_without_a_change_workload_is_a_conflict(caches: Caches, writer: Writer) -> None:
    put(caches, newer(workload(V3)))
    with pytest.raises(EndpointError, match="just being released") as caught:
        await ask(caches, writer)
    assert caught.value.code == 409


async def test_rollback_in_progress_is_not_requested_again_and_no_other_one_is_begun(
    caches: Caches, writer: Writer
) -> None:
    target = SourceRef("ReplicaSet", "sleep-1", "uid", V1, V1)
    status = ChangeWorkloadStatus(status=WorkloadState.ROLLBACK, rollback_to=V1, rollback_target=target)
    put(caches, newer(release(V2, status=status)))
    for to in ("", V1, "sleep-1"):
        assert (await ask(caches, writer, to)).message == "this rollback is in progress"
    with pytest.raises(EndpointError, match="is in progress") as caught:
        await ask(caches, writer, V3)
    assert caught.value.code == 409
    put(caches, newer(workload(V1)))  # the older version is released, and has no ChangeWorkload yet
    assert (await ask(caches, writer)).message == "this rollback is in progress"
    assert writer.written == []


async def test_request_after_the_rollback_goes_back_no_further(caches: Caches, writer: Writer) -> None:
    done = Condition(ConditionType.ROLLED_BACK, "True", "Requested", last_transition_time="1970-01-01T00:00:00Z")
    failed = ChangeWorkloadStatus(status=WorkloadState.FAILED, rollback_to=V1, conditions=(done,))
    put(caches, newer(release(V2, status=failed)), newer(workload(V1)), release(V1, status=WorkloadState.SUCCESS))
    assert (await ask(caches, writer)).message.startswith(f"version {V2} was rolled back to the current version")
    assert (await ask(caches, writer, V1)).message == "this is the current version"
    assert writer.written == []
    assert (await ask(caches, writer, V3)).message == "requested"


async def test_change_workload_of_a_deleted_workload_of_the_same_name_does_not_count(
    caches: Caches, writer: Writer
) -> None:
    other = msgspec.structs.replace(release(V2).metadata, resource_version="2", owner_references=())
    status = ChangeWorkloadStatus(status=WorkloadState.ROLLBACK)
    put(caches, msgspec.structs.replace(release(V2), metadata=other, status=status))
    with pytest.raises(EndpointError, match="just being released"):
        await ask(caches, writer)
    assert writer.written == []


async def test_nothing_is_requested_before_the_caches_are_filled(caches: Caches, writer: Writer) -> None:
    caches.releases._reflector.synced.clear()
    with pytest.raises(EndpointError) as caught:
        await ask(caches, writer)
    assert (caught.value.code, writer.written) == (503, [])
