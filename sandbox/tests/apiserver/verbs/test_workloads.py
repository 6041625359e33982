"""Requests for StatefulSets, DaemonSets, ControllerRevisions and quotas."""

from typing import Any

import pytest

from support.manifests import PODS, pod
from support.requests import APPLY, MERGE, STRATEGIC, TABLE, serving

APPS = "/apis/apps/v1/namespaces/default"
STATEFUL_SETS, DAEMON_SETS = f"{APPS}/statefulsets", f"{APPS}/daemonsets"
REVISIONS, REPLICA_SETS = f"{APPS}/controllerrevisions", f"{APPS}/replicasets"
QUOTAS = "/api/v1/namespaces/default/resourcequotas"
GENERATION = "deprecated.daemonset.template.generation"


def workload(name: str, image: str = "busybox", **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image}]}}
    return {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template, **spec}}


async def test_created_stateful_set_gets_its_defaults() -> None:
    async with serving() as http:
        spec = (await http("POST", STATEFUL_SETS, workload("web"))).json["spec"]
        assert (spec["replicas"], spec["podManagementPolicy"], spec["revisionHistoryLimit"]) == (1, "OrderedReady", 10)
        assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}
        assert spec["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}


async def test_stateful_set_update_may_change_the_listed_fields_only() -> None:
    async with serving() as http:
        await http("POST", STATEFUL_SETS, workload("web"))
        refused = await http("PATCH", f"{STATEFUL_SETS}/web", {"spec": {"serviceName": "other"}}, type_=MERGE)
        assert (refused.status, refused.message) == (
            422,
            'StatefulSet.apps "web" is invalid: spec: Forbidden: updates to statefulset spec for fields other than '
            "'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', "
            "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        )
        allowed = await http("PATCH", f"{STATEFUL_SETS}/web", {"spec": {"minReadySeconds": 1}}, type_=MERGE)
        assert (allowed.status, allowed.json["metadata"]["generation"]) == (200, 2)


async def test_max_unavailable_of_a_stateful_set_is_dropped() -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 2}}
    async with serving() as http:
        made = (await http("POST", STATEFUL_SETS, workload("web", updateStrategy=strategy))).json
        assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 1}
        patch = {"spec": {"updateStrategy": strategy}}
        changed = (await http("PATCH", f"{STATEFUL_SETS}/web", patch, type_=MERGE)).json
        assert (changed["spec"], changed["metadata"]["generation"]) == (made["spec"], 1)


async def test_scale_endpoint_of_a_stateful_set_sets_its_replicas() -> None:
    async with serving() as http:
        await http("POST", STATEFUL_SETS, workload("web"))
        await http("PATCH", f"{STATEFUL_SETS}/web/scale", {"spec": {"replicas": 3}}, type_=MERGE)
        scale = (await http("GET", f"{STATEFUL_SETS}/web/scale")).json
        assert (scale["spec"], scale["status"]) == ({"replicas": 3}, {"replicas": 0, "selector": "app=web"})


async def test_status_with_more_ready_than_all_replicas_is_refused() -> None:
    async with serving() as http:
        await http("POST", STATEFUL_SETS, workload("web"))
        status = {"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 2}}
        refused = await http("PATCH", f"{STATEFUL_SETS}/web/status", status, type_=MERGE)
        assert refused.status == 422
        assert "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas" in refused.message


async def test_change_of_a_daemon_set_template_raises_its_template_generation() -> None:
    async with serving() as http:
        made = (await http("POST", DAEMON_SETS, workload("agent"))).json
        assert made["metadata"]["annotations"] == {GENERATION: "1"}
        assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
        for patch, expected in (
            ({"metadata": {"annotations": {GENERATION: "7", "mine": "1"}}}, ("1", 1)),
            ({"spec": {"minReadySeconds": 1}}, ("1", 2)),
            ({"spec": {"template": {"metadata": {"annotations": {"x": "y"}}}}}, ("2", 3)),
        ):
            metadata = (await http("PATCH", f"{DAEMON_SETS}/agent", patch, type_=MERGE)).json["metadata"]
            assert (metadata["annotations"][GENERATION], metadata["generation"]) == expected


async def test_selector_of_a_daemon_set_cannot_change() -> None:
    async with serving() as http:
        await http("POST", DAEMON_SETS, workload("agent"))
        patch = {"spec": {"selector": {"matchLabels": {"x": "y"}}}}
        refused = await http("PATCH", f"{DAEMON_SETS}/agent", patch, type_=MERGE)
        assert refused.status == 422
        assert "spec.selector: Invalid value" in refused.message
        assert "field is immutable" in refused.message


@pytest.mark.parametrize(("type_", "status"), [(MERGE, 200), (STRATEGIC, 422), (APPLY, 422)])
async def test_strategic_patch_and_apply_change_the_data_of_a_controller_revision_whose_keys_were_not_sorted(
    type_: str, status: int
) -> None:
    patch = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"labels": {"a": "b"}}}
    async with serving() as http:
        for name, data, expected in (
            ("sorted", {"a": {"b": 1, "c": 2}}, 200),
            ("not", {"a": {"c": 2, "b": 1}}, status),
        ):
            await http("POST", REVISIONS, {"metadata": {"name": name}, "data": data, "revision": 1})
            path = f"{REVISIONS}/{name}" + ("?fieldManager=x" if type_ == APPLY else "")
            answer = await http("PATCH", path, {**patch, "metadata": {"name": name, "labels": {}}}, type_=type_)
            assert answer.status == expected, name
            if expected == 422:
                assert answer.message.endswith('data: Invalid value: {"a":{"b":1,"c":2}}: field is immutable')


async def test_controller_revision_may_change_its_number_but_not_its_data() -> None:
    revision = {"metadata": {"name": "web-1"}, "data": {"spec": {"a": 1}}, "revision": 1}
    async with serving() as http:
        made = await http("POST", REVISIONS, revision)
        assert (made.status, made.json["data"], made.json["revision"]) == (201, {"spec": {"a": 1}}, 1)
        assert (await http("PATCH", f"{REVISIONS}/web-1", {"revision": 2}, type_=MERGE)).json["revision"] == 2
        refused = await http("PATCH", f"{REVISIONS}/web-1", {"data": {"spec": {"a": 2}}}, type_=MERGE)
        assert refused.status == 422
        assert refused.message.endswith('data: Invalid value: {"spec":{"a":2}}: field is immutable')
        empty = await http("POST", REVISIONS, {"metadata": {"name": "x"}, "revision": -1})
        assert "data: Required value: data is mandatory" in empty.message
        assert "revision: Invalid value: -1: must be greater than or equal to 0" in empty.message
        table = (await http("GET", REVISIONS, Accept=TABLE)).json
        assert table["rows"][0]["cells"][:3] == ["web-1", "<none>", 2]


async def test_replica_sets_have_no_field_selector_for_replicas() -> None:
    """Unlike its documentation, kube-apiserver has none: https://github.com/kubernetes/kubernetes/issues/135136"""
    async with serving() as http:
        refused = await http("GET", f"{REPLICA_SETS}?fieldSelector=status.replicas%3D0")
        assert refused.status == 400
        assert '"status.replicas" is not a known field selector' in refused.message


@pytest.mark.parametrize(
    ("hard", "refusal"),
    [
        ({"pods": "1"}, "requested: pods=1, used: pods=1, limited: pods=1"),
        ({"count/pods": "1"}, "requested: count/pods=1, used: count/pods=1, limited: count/pods=1"),
        ({"pods": "2", "requests.cpu": "1"}, ""),
    ],
)
async def test_quota_limits_the_number_of_pods(hard: dict[str, str], refusal: str) -> None:
    async with serving() as http:
        await http("POST", QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": hard}})
        assert (await http("POST", PODS, pod("one"))).status == 201
        second = await http("POST", PODS, pod("two"))
        if refusal:
            assert (second.status, second.message) == (
                403,
                f'pods "two" is forbidden: exceeded quota: few, {refusal}',
            )
        else:
            assert second.status == 201
