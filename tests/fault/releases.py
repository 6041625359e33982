"""Reads ChangeWorkloads and ChangePods in fault tests."""

from altershield.api import names
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS
from tests.fault.reconciler_cluster import Cluster, Object


def release(version: str) -> str:
    """The name of the ChangeWorkload of a version."""
    return names.change_workload_name("", "sleep", version)


async def until_state(cluster: Cluster, version: str, state: str) -> Object:
    """The ChangeWorkload of a version, once it is in this state."""

    async def met() -> Object | None:
        found = await cluster.get(CHANGE_WORKLOADS, release(version))
        return found if found is not None and found.get("status", {}).get("status") == state else None

    found = await cluster.until(met, f"the state {state}")
    assert found is not None
    return found


def condition(found: Object, type_: str) -> tuple[str, str]:
    """Status and reason of a condition; empty if there is none."""
    conditions = found.get("status", {}).get("conditions", [])
    return next(((each["status"], each["reason"]) for each in conditions if each["type"] == type_), ("", ""))


async def batches(cluster: Cluster) -> list[Object]:
    """All ChangePods."""
    listed: list[Object] = (await cluster.admin.list(CHANGE_PODS, cluster.namespace, as_=dict)).items
    return listed
