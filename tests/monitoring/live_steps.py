"""Releases in steps, and releases at which gates are closed, while a Prometheus watches."""

import asyncio
import functools
from collections.abc import Awaitable
from typing import Any

from altershield.api.annotations import ROLLOUT
from altershield.api.change_workload import ChangeWorkload, WorkloadState
from altershield.api.resources import (
    CHANGE_WORKLOADS,
    DEFENSE_POLICIES,
    RELEASE_FREEZES,
    RELEASE_LIMITS,
    RELEASE_OVERRIDES,
    RELEASE_WINDOWS,
)
from altershield.views.current_user import user
from command.demo.sample import NAMESPACE, manifest
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ApiError
from kube_base.resources import DEPLOYMENTS, Resource
from tests.monitoring.prometheus import Prometheus
from tests.support.polling import eventually, until

_WAITS = "altershield_release_step_waiting_timestamp_seconds"
_EVERY_DAY = {"weekly": {"days": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]}}
_LONG_AGO = {"dates": {"from": "2020-12-24", "to": "2020-12-26"}}


def new(resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """An object."""
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}, "spec": spec}


async def passes(write: Awaitable[Any]) -> bool:
    """Whether the API server accepts a write."""
    try:
        await write
    except ApiError:
        return False
    return True


async def in_steps(client: Client, seen: Prometheus) -> None:
    """A release in steps, whose first step passed, and whose second step waits for a person."""
    name = "stepwise"
    await _with_steps(client, name, [{"pods": 1, "soakSeconds": 1}, {"pods": 2, "soakSeconds": 1, "approval": True}])
    await _release(client, name)
    waits = f'{_WAITS}{{workload="{name}", reason="approval"}}'
    await asyncio.to_thread(eventually, functools.partial(seen.value, waits), "the release to wait for a person")


async def blow_a_fuse(client: Client, name: str) -> None:
    """A limit whose fuse trips when the first release of the workload of this name fails."""
    spec = {"selector": _labelled(name), "fuse": {"failures": 1, "periodSeconds": 3600}}
    await client.create(RELEASE_LIMITS, new(RELEASE_LIMITS, name, spec), NAMESPACE)


async def gated(client: Client, seen: Prometheus) -> None:
    """Windows and freezes of both modes, a release that is held by a freeze, three that another one denies, and one
    that passes by an override."""
    held, denied = "held", "denied"
    await _with_steps(client, held, [{"pods": 1, "soakSeconds": 1}])
    await client.create(DEPLOYMENTS, _deployment(denied), NAMESPACE)
    by = await user(client)
    for name, type_, mode, schedule in (
        ("weekend", "Deny", "warn", _EVERY_DAY),
        ("business-hours", "Allow", "enforce", _EVERY_DAY),
        ("holidays", "Deny", "enforce", _LONG_AGO),
    ):
        spec = {"type": type_, "mode": mode, "selector": _labelled(denied), "schedules": [schedule]}
        await client.create(RELEASE_WINDOWS, new(RELEASE_WINDOWS, name, spec), NAMESPACE)
    for name, more in (
        ("sale", {"selector": _labelled(held), "whenClosed": "Hold"}),
        ("incident-7", {"selector": _labelled(denied)}),
        ("trial", {"selector": _labelled(denied), "mode": "warn"}),
    ):
        spec = {"reason": "no release now", "requestedBy": by, **more}
        await client.create(RELEASE_FREEZES, new(RELEASE_FREEZES, name, spec), NAMESPACE)

    async def is_denied() -> bool:
        return not await passes(_release(client, denied, dry_run=True))

    await until(is_denied, "the gatekeeper to know the freezes")
    await _release(client, held)
    for number in range(1, 4):  # Prometheus sees each one: a rate needs two values of a series
        assert not await passes(_release(client, denied)), "it was admitted"
        count = f'sum(altershield_admission_denials_total{{reason="gate-closed"}}) >= {number}'
        await asyncio.to_thread(eventually, functools.partial(seen.value, count), "the denial to be counted")
    override = {
        "reason": "the fix of incident 7",
        "requestedBy": by,
        "target": {"namespace": NAMESPACE, "kind": DEPLOYMENTS.kind, "name": denied},
        "gates": ["Freeze", "Window"],
    }
    await client.create(RELEASE_OVERRIDES, new(RELEASE_OVERRIDES, denied, override), NAMESPACE)
    await until(lambda: passes(_release(client, denied)), "the override to be known")
    for wanted in (
        f'{_WAITS}{{workload="{held}", reason="freeze"}}',
        'altershield_admission_bypasses_total{bypass="overridden"} > 0',
        "count(altershield_release_window_open) == 6",  # two reconcilers show three windows
    ):
        await asyncio.to_thread(eventually, functools.partial(seen.value, wanted), wanted)


async def _with_steps(client: Client, name: str, steps: list[dict[str, Any]]) -> None:
    """A Deployment whose first version succeeded, and a policy for its next release."""

    async def is_known() -> bool:
        """Whether the gatekeeper knows the policy, and would hold a release."""
        return ROLLOUT.encode() in await _release(client, name, dry_run=True)

    async def is_verified() -> bool:
        found = (await client.list(CHANGE_WORKLOADS, NAMESPACE, as_=ChangeWorkload)).items
        return any(each.spec.service_name == name and each.status.status == WorkloadState.SUCCESS for each in found)

    await client.create(DEPLOYMENTS, _deployment(name), NAMESPACE)
    await until(is_verified, "the first version to succeed")
    policy = {"selector": _labelled(name), "rollout": {"steps": steps}}
    await client.create(DEFENSE_POLICIES, new(DEFENSE_POLICIES, name, policy), NAMESPACE)
    await until(is_known, "the gatekeeper to know the policy")


def _deployment(name: str) -> dict[str, Any]:
    return {**manifest(), "metadata": {"name": name, "labels": {"app": name}}}


def _labelled(name: str) -> dict[str, Any]:
    return {"matchLabels": {"app": name}}


async def _release(client: Client, name: str, *, dry_run: bool = False) -> bytes:
    """Release a second version. Returns the answer of the API server."""
    patch = {"spec": {"template": {"metadata": {"annotations": {"release": "2"}}}}}
    query = {"dryRun": "All"} if dry_run else {}
    path = DEPLOYMENTS.path(NAMESPACE, name)
    return await client.request("PATCH", path, query=query, body=patch, content_type=PatchType.MERGE)
