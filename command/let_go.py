"""Ends the holds of releases in steps before AlterShield is deleted.

As long as a reconciler leads, the setting `rollout` is switched off, and the reconciler gives each workload its own
fields back. When there are no reconciler and no webhook, the workloads are patched directly.
"""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple

import msgspec

from altershield.api.json_patch import Operation, at_version
from altershield.api.names import LEASE, SYSTEM_NAMESPACE
from altershield.api.ops_config import DEFAULTS, ROLLOUT
from altershield.api.resources import OPS_CONFIG_INFOS
from altershield.workloads import ADAPTERS, held, held_managers
from altershield.workloads.adapter import Adapter, Object
from altershield.workloads.applied import OWN_MANAGER
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ApiError, ConflictError, InvalidError, NotFoundError
from kube_base.meta import ObjectMeta
from kube_base.resources import LEASES

WAIT_SECONDS = 60.0  # a reconciler takes one or two writes for each workload
_POLL = 1.0
_ATTEMPTS = 5


class Held(NamedTuple):
    """A workload that is held in steps, or whose fields still have AlterShield's field manager."""

    adapter: Adapter
    metadata: ObjectMeta

    def __str__(self) -> str:
        return f"{self.adapter.resource.kind} {self.metadata.namespace}/{self.metadata.name}"


async def switch_off(client: Client, *, system_namespace: str = SYSTEM_NAMESPACE) -> list[Held]:
    """Switch the setting `rollout` off, and wait until the reconciler has ended all holds. Prints each workload.
    Returns those that are still held; at once if no reconciler leads. ApiError: the API server refuses."""
    left = [each async for each in held_workloads(client)]
    if not left:
        return []
    setting: Object = {"spec": {"enable": False}}
    try:
        await client.patch(OPS_CONFIG_INFOS, setting, ROLLOUT, system_namespace)
    except NotFoundError:
        default = msgspec.to_builtins(msgspec.structs.replace(DEFAULTS[ROLLOUT], enable=False))
        metadata = {"name": ROLLOUT, "namespace": system_namespace}
        made = {"apiVersion": OPS_CONFIG_INFOS.api_version, "kind": OPS_CONFIG_INFOS.kind, "metadata": metadata}
        with contextlib.suppress(NotFoundError):  # neither the kind nor a reconciler is there
            await client.create(OPS_CONFIG_INFOS, {**made, "spec": default}, system_namespace)
    deadline = asyncio.get_running_loop().time() + WAIT_SECONDS
    while left and await _leads(client, system_namespace) and asyncio.get_running_loop().time() < deadline:
        await asyncio.sleep(_POLL)
        still = [each async for each in held_workloads(client)]
        names = {str(each) for each in still}
        for each in left:
            if str(each) not in names:
                print(f"ended the hold of {each}", flush=True)
        left = still
    return left


async def end_directly(client: Client) -> list[Held]:
    """End the holds that are left, when no webhook is called any more. Prints each workload. Returns those of which
    the API server refuses the patch."""
    refused = []
    async for each in held_workloads(client):
        try:
            await _again(lambda each=each: _end(client, each))  # type: ignore[misc]
        except NotFoundError:
            continue
        except ApiError as error:
            print(f"cannot end the hold of {each}: {error}", file=sys.stderr, flush=True)
            refused.append(each)
        else:
            print(f"ended the hold of {each}", flush=True)
    return refused


async def held_workloads(client: Client) -> AsyncIterator[Held]:
    """The workloads of all namespaces that are held in steps, or whose fields are to be freed."""
    for adapter in ADAPTERS:
        try:
            async for page in client.pages(adapter.resource, metadata_only=True):
                for item in page.items:
                    raw = msgspec.json.decode(item)
                    is_held = held.steps(raw["metadata"].get("annotations")) is not None
                    if is_held or held_managers.left(raw, adapter.held_fields) is not None:
                        yield Held(adapter, msgspec.convert(raw["metadata"], ObjectMeta))
        except NotFoundError:
            continue  # the cluster does not have this kind


async def _end(client: Client, workload: Held) -> None:
    raw: Object = await client.get(workload.adapter.resource, workload.metadata.name, workload.metadata.namespace)
    if operations := held.restoration(workload.adapter, raw):
        raw = await _patch(client, workload, raw, operations)
    entries = held_managers.freed(raw, workload.adapter.held_fields)
    if entries is not None:
        await _patch(client, workload, raw, [{"op": "replace", "path": "/metadata/managedFields", "value": entries}])


async def _patch(client: Client, workload: Held, raw: Object, operations: list[Operation]) -> Object:
    """Change the workload if it has not changed since it was read. As AlterShield's field manager, so that its entry
    is found and removed."""
    found: Object = await client.patch(
        workload.adapter.resource,
        [at_version(raw["metadata"]["resourceVersion"]), *operations],
        workload.metadata.name,
        workload.metadata.namespace,
        type_=PatchType.JSON,
        field_manager=OWN_MANAGER,
    )
    return found


async def _again(write: Callable[[], Awaitable[None]]) -> None:
    """Repeat a write of a workload that changes meanwhile."""
    for _ in range(_ATTEMPTS - 1):
        try:
            return await write()
        except (ConflictError, InvalidError):
            await asyncio.sleep(_POLL / _ATTEMPTS)
    return await write()


async def _leads(client: Client, namespace: str) -> bool:
    """Whether a reconciler holds the Lease."""
    try:
        lease: dict[str, Any] = await client.get(LEASES, LEASE, namespace)
    except ApiError:
        return False
    return bool(lease.get("spec", {}).get("holderIdentity"))
