"""What `altershield status` shows, and how it ends."""

from typing import Any

import msgspec
import pytest

from altershield.api import labels
from altershield.api.kinds import (
    ChangeWorkload,
    ChangeWorkloadSpec,
    ChangeWorkloadStatus,
    ConditionType,
    PodInfo,
    WorkloadRef,
    WorkloadState,
)
from altershield.api.meta import Condition, ObjectMeta, OwnerReference
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.commands.status import Release, _listed, _row, exit_code, matched, wanted
from altershield.errors import UsageError
from altershield.kube.errors import ForbiddenError
from altershield.workloads import ADAPTERS, BY_KIND, Adapter, change_workload_name
from altershield.workloads.workload import Workload
from tests.stub_api import answer, serving

V1, V2 = "1" * 32, "2" * 32


def obj(kind: str = "Deployment", name: str = "web", version: str = V1, uid: str = "u", **own: str) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "shop",
        "uid": uid,
        "labels": {labels.VERSION: version, labels.DEFENSE_STATUS: labels.PROCESSED, **own},
    }
    return {
        "apiVersion": BY_KIND[kind].resource.api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": {"template": {"metadata": {}, "spec": {}}},
    }


def workload(kind: str = "Deployment", name: str = "web", version: str = V1, **more: str) -> Workload:
    return BY_KIND[kind].read(msgspec.json.encode(obj(kind, name, version, **more)))


def record(
    status: ChangeWorkloadStatus, kind: str = "Deployment", name: str = "web", version: str = V1, uid: str = "u"
) -> ChangeWorkload:
    own = change_workload_name(kind, name, version)
    ref = WorkloadRef(BY_KIND[kind].resource.api_version, kind, name, uid)
    owner = OwnerReference(kind, name, uid, ref.api_version, controller=True)
    spec = ChangeWorkloadSpec(own, name, name, version, 1, 60, "", 0, ref)
    return ChangeWorkload(ObjectMeta(name=own, namespace="shop", owner_references=(owner,)), spec, status)


def why(*conditions: Condition, **status: Any) -> str:
    return _row(Release(record(ChangeWorkloadStatus(conditions=conditions, **status)), workload())).why


def test_what_a_verdict_says_cannot_steer_the_terminal() -> None:
    assert why(Condition(ConditionType.VERIFIED, "False", "R", "pod a: \x1b[31mred\nline")) == "pod a:  [31mred line"


def test_status_says_which_release_slipped_past_the_gate() -> None:
    slipped = Condition(ConditionType.SLIPPED, "True", "VersionReused", "web-1 slipped past the gate: ...")
    verified = Condition(ConditionType.VERIFIED, "True", "PodsPassed", "5 of 5 pods passed")
    assert why(slipped, verified) == "slipped past the gate (VersionReused); 5 of 5 pods passed"


def test_status_says_what_a_release_waits_for() -> None:
    assert why(Condition(ConditionType.STALLED, "True", "Paused", "it is paused")) == "Paused: it is paused"
    verified = Condition(ConditionType.VERIFIED, "Unknown", "NoPods", "0 of 0 pods passed")
    assert why(Condition(ConditionType.NO_REPLICAS, "True", "R", "no pod is wanted"), verified) == "no pod is wanted"
    assert why(Condition(ConditionType.NO_REPLICAS, "False", "R", "x"), verified) == "0 of 0 pods passed"


def test_a_row_tells_kind_and_name_and_which_version_is_the_present_one() -> None:
    status = ChangeWorkloadStatus(
        status=WorkloadState.SUSPEND,
        entry_time_unix=1683791175,
        defense_check_fail_pods=(PodInfo("db-0", message="x"),),
    )
    row = _row(Release(record(status, "StatefulSet", "db"), workload("StatefulSet", "db")))
    assert row.cells == (*("shop", "statefulset/db", f"{V1[:12]}*", "Suspend", "0", "1", "0", "2023-05-11 07:46:15"),)
    assert row.why == "failed: db-0 (x)"
    superseded = _row(Release(record(status, "StatefulSet", "db"), workload("StatefulSet", "db", V2)))
    assert superseded.cells[2] == V1[:12]


def test_records_are_shown_with_the_workload_of_their_kind_and_of_no_namesake() -> None:
    done = ChangeWorkloadStatus(status=WorkloadState.SUCCESS)
    records = [record(done, each.resource.kind) for each in ADAPTERS]
    of_deleted = record(done, "DaemonSet", uid="another", version=V2)
    workloads = [workload(each.resource.kind) for each in ADAPTERS]

    shown = matched([of_deleted, *records], workloads)

    assert {(r.spec.workload_ref.kind, w.kind) for r, w in shown} == {(each.resource.kind,) * 2 for each in ADAPTERS}
    assert of_deleted not in [release.record for release in shown]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.resource.plural)
def test_a_workload_is_named_with_or_without_its_kind(adapter: Adapter) -> None:
    resource = adapter.resource
    for kind in (resource.kind, resource.kind.lower(), resource.plural):
        assert wanted(f"{kind}/web") == ([adapter], "web")
    assert wanted("web") == (ADAPTERS, "web")
    assert wanted("") == (ADAPTERS, "")


@pytest.mark.parametrize("argument", ["job/web", "a/b/c", "/web", "statefulset/"])
def test_what_names_no_workload_is_refused(argument: str) -> None:
    with pytest.raises(UsageError, match="deployment, statefulset, daemonset, cloneset"):
        wanted(argument)


def test_exit_codes_tell_suspended_from_rolled_back_from_fine() -> None:
    fine = record(ChangeWorkloadStatus(status=WorkloadState.SUCCESS))
    condition = Condition(ConditionType.ROLLED_BACK, "True", "PodNotUp")
    rolled_back = record(ChangeWorkloadStatus(status=WorkloadState.FAILED, conditions=(condition,)))
    assert exit_code([fine], [workload()]) == 0
    assert exit_code([fine, rolled_back], [workload()]) == 5
    assert exit_code([fine, rolled_back], [workload(**{labels.SUSPEND: "1"})]) == 3
    assert exit_code([record(ChangeWorkloadStatus(status=WorkloadState.SUSPEND))], [workload()]) == 3


@pytest.mark.parametrize("code", [404, 403])
async def test_a_cluster_without_the_kind_has_no_workloads_of_it(code: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Who may not list everything is told 403 of a kind that is not there."""
    clone_sets = BY_KIND["CloneSet"]
    known = [record(ChangeWorkloadStatus(), "CloneSet")]
    async with serving() as (api, client):
        api.fault(lambda request: request.path.endswith("/clonesets"), answer(code), times=2)
        assert await _listed(client, clone_sets, "shop", []) == ()
        assert capsys.readouterr().err == ""
        assert await _listed(client, clone_sets, "shop", known) == ()
        assert ("releases of clonesets are not shown" in capsys.readouterr().err) == (code == 403)


async def test_a_kind_of_kubernetes_own_that_may_not_be_listed_is_an_error() -> None:
    async with serving() as (api, client):
        api.fault(lambda request: request.path.endswith("/statefulsets"), answer(403))
        with pytest.raises(ForbiddenError):
            await _listed(client, BY_KIND["StatefulSet"], "shop", [])


async def test_workloads_are_listed_by_their_label() -> None:
    async with serving() as (api, client):
        await api.put(BY_KIND["StatefulSet"].resource, obj("StatefulSet", "db"))
        await api.put(CHANGE_WORKLOADS, msgspec.to_builtins(record(ChangeWorkloadStatus(), "StatefulSet", "db")))
        (found,) = await _listed(client, BY_KIND["StatefulSet"], "shop", [])
        assert (found.kind, found.metadata.name, found.version) == ("StatefulSet", "db", V1)
