"""Reads ChangeWorkloads and ChangePods in fault tests."""

from altershield.api import names
from altershield.api.check_specs import CheckSpec, HttpCheck, OnUnknown, Phase
from altershield.api.gates.overrides import GateName, ReleaseOverride, ReleaseOverrideSpec, Target
from altershield.api.policy import DefensePolicy, DefensePolicySpec
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, DEFENSE_POLICIES, RELEASE_OVERRIDES
from kube_base.meta import ObjectMeta
from kube_base.times import now
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


async def use_override(cluster: Cluster, version: str, at: str = "") -> None:
    """Create the ReleaseOverride `fix`, and store its use by this version, as a gatekeeper does. `at`: when it was
    used; empty: now."""
    target, gates = Target("Deployment", "sleep"), (GateName.FREEZE,)
    spec = ReleaseOverrideSpec(reason="the fix of incident 7", requested_by="ann", target=target, gates=gates)
    made = ReleaseOverride(ObjectMeta("fix", cluster.namespace), spec)
    await cluster.admin.create(RELEASE_OVERRIDES, made, cluster.namespace)
    uid = (await cluster.deployment())["metadata"]["uid"]
    use = {"uid": uid, "version": version, "time": at or now(), "by": "bob", "gates": ["ReleaseFreeze shop/incident"]}
    await cluster.set_status(RELEASE_OVERRIDES, "fix", {"used": 1, "uses": [use]})


async def apply_policy(cluster: Cluster, url: str, on_unknown: OnUnknown = OnUnknown.PASS, *phases: Phase) -> None:
    """Create the policy `gate` with the check `http`, called `smoke`, and wait until it is accepted."""
    await apply_check(
        cluster,
        CheckSpec("smoke", phases or (Phase.POST,), timeout_seconds=4, on_unknown=on_unknown, http=HttpCheck(url=url)),
    )


async def apply_check(cluster: Cluster, check: CheckSpec) -> None:
    """Create the policy `gate` with this check, and wait until it is accepted."""
    policy = DefensePolicy(ObjectMeta(name="gate", namespace=cluster.namespace), DefensePolicySpec(checks=(check,)))
    await cluster.admin.create(DEFENSE_POLICIES, policy, cluster.namespace)

    async def accepted() -> bool:
        found = await cluster.get(DEFENSE_POLICIES, "gate")
        return found is not None and condition(found, "Accepted")[0] == "True"

    await cluster.until(accepted, "the policy accepted")
