"""What is held, and what is not waited for."""

from typing import Any

import msgspec

from altershield.api.annotations import ROLLOUT
from altershield.api.rollout import Rollout
from altershield.workloads import BY_KIND, hold
from altershield.workloads.held import in_force, with_values
from command import let_go
from kube_base.resources import DEPLOYMENTS
from tests.support.stub_api import serving

ADAPTER = BY_KIND[DEPLOYMENTS.group_kind]
OWN = {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}, "replicas": 4}


def held_workload() -> dict[str, Any]:
    fields = {"/spec/strategy/rollingUpdate/maxSurge": "25%", "/spec/strategy/rollingUpdate/maxUnavailable": 1}
    causes, rollout = (hold.Cause(hold.STEPS, pods=1),), Rollout(pods=(1,))
    known = hold.Hold("v2", causes, fields, base="v1", rollout=rollout, replicas=4, write=1)
    annotations = {ROLLOUT: msgspec.json.encode(known).decode(), "other": "kept"}
    metadata = {"name": "web", "namespace": "shop", "uid": "1", "resourceVersion": "1", "annotations": annotations}
    return {"metadata": metadata, "spec": with_values(OWN, in_force(ADAPTER, known))}


async def test_workloads_are_left_at_once_if_nobody_leads() -> None:
    async with serving() as (api, client):
        await api.put(DEPLOYMENTS, held_workload())
        assert [str(each) for each in await let_go.switch_off(client)] == ["Deployment shop/web"]


async def test_nothing_is_changed_if_nothing_is_held() -> None:
    async with serving() as (api, client):
        assert await let_go.switch_off(client) == []
        assert {each.method for each in api.requests} == {"GET"}
