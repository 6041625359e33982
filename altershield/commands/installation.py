"""The gate in the foreground: what it needs in the cluster, and its two processes on this machine.

The processes run under production's service account with production's permissions, so a rule that is missing,
or an identity that is mixed up, shows here and not in a cluster. Only the webhook configurations are removed at
the end: they point at this machine.
"""

import asyncio
import base64
import contextlib
import datetime
import os
import ssl
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from altershield.admission.webhooks import WEBHOOKS
from altershield.api import names
from altershield.api.resources import (
    CRDS,
    MUTATING_WEBHOOKS,
    NAMESPACES,
    VALIDATING_WEBHOOKS,
    Resource,
)
from altershield.commands.account import Account
from altershield.errors import AlterShieldError, UsageError
from altershield.install import crds, rbac, webhooks
from altershield.kube.client import Client, ObjectList, PatchType
from altershield.kube.errors import NotFoundError
from altershield.pki import Authority
from altershield.process import options
from altershield.process.children import Process, free_ports
from altershield.process.health import until_ready
from altershield.process.thresholds import Thresholds

LOOPBACK = "127.0.0.1"
"""Where the API server looks for the gate, unless another address is given."""

CONFIGURATION = "altershield-dev"
"""The webhook configurations of this command; an installed AlterShield's are called otherwise."""

_FIELD_MANAGER = "altershield-dev"
_READY_SECONDS = 30.0
_ANSWER_SECONDS = 10.0  # nobody there refuses at once; a busy gate may take its time
_WEBHOOK_KINDS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)


class InstallationStoppedError(AlterShieldError):
    """The gate did not come up, or one of its processes ended on its own."""


class Gate:
    """The running gate. `failed()` ends only when one of its processes does."""

    def __init__(self, processes: Mapping[str, Process], url: str) -> None:
        self._processes = processes
        self.url = url

    async def failed(self) -> None:
        waiting = {asyncio.create_task(process.wait()): name for name, process in self._processes.items()}
        try:
            done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
        ended = next(iter(done))
        raise InstallationStoppedError(f"the {waiting[ended]} ended with exit code {ended.result()}; its log says why")


@contextlib.asynccontextmanager
async def running_installation(
    kubeconfig: str | None,
    directory: Path,
    thresholds: Thresholds,
    *,
    context: str | None = None,
    host: str = LOOPBACK,
    port: int = 0,
    log_level: str = options.LOG_LEVEL,
    log: Path | None = None,
) -> AsyncIterator[Gate]:
    """Install what the gate needs and run it until the block ends. `directory` (private to this user) takes its
    certificate and credentials, `host` is where the API server reaches this machine, `log` the processes' output
    (None: where ours goes)."""
    async with await Client.connect(kubeconfig, context=context) as admin:
        await _refuse_running(admin)
        await remove_webhooks(admin)
        await _refuse_second(admin)
        await install(admin)
        authority = Authority.create("AlterShield development", lifetime=datetime.timedelta(days=30))
        serving = authority.issue("gatekeeper", hosts=[host], lifetime=datetime.timedelta(days=30))
        certificate, key = directory / "tls.crt", directory / "tls.key"
        certificate.write_bytes(serving.certificate)
        key.touch(mode=0o600)
        key.write_bytes(serving.key)
        account = await Account.create(admin, directory)

        listen = host if host == LOOPBACK else ""
        free = free_ports(3)
        port, health_ports = port or free[0], free[1:]
        common = ["--kubeconfig", str(account.kubeconfig), "--log-level", log_level, "--metrics-port"]
        gatekeeper = _process(
            "gatekeeper",
            *(*common, str(health_ports[0]), "--host", listen, "--port", str(port), "--shutdown-delay", "0"),
            *("--tls-cert-file", str(certificate), "--tls-private-key-file", str(key)),
            log=log,
        )
        reconciler = _process("reconciler", *common, str(health_ports[1]), *thresholds.arguments, log=log)
        gate = Gate({"gatekeeper": gatekeeper, "reconciler": reconciler}, f"https://{_in_url(host)}:{port}")
        async with gatekeeper, reconciler, account.renewed():
            await _until_ready(gate, health_ports)
            try:
                for resource, configuration in zip(
                    _WEBHOOK_KINDS,
                    webhooks.configurations(
                        CONFIGURATION, gate.url, authority.pair.certificate, system_namespace=names.SYSTEM_NAMESPACE
                    ),
                    strict=True,
                ):
                    await _apply(admin, resource, configuration)
                yield gate
            finally:  # before the gatekeeper goes, or releases would be refused
                await remove_webhooks(admin)


async def remove_webhooks(admin: Client) -> None:
    """Take this command's webhook configurations away, its last run's too."""
    for resource in _WEBHOOK_KINDS:
        with contextlib.suppress(NotFoundError):
            await admin.delete(resource, CONFIGURATION)


async def install(admin: Client) -> None:
    """Apply the system namespace, the CRDs, the service account and its permissions, and wait for the CRDs."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": names.SYSTEM_NAMESPACE, "labels": rbac.LABELS},
    }
    await _apply(admin, NAMESPACES, namespace)
    for crd in crds.crds():
        await _apply(admin, CRDS, crd)
    for obj in (*rbac.objects(names.SYSTEM_NAMESPACE), *rbac.user_roles()):
        await _apply(admin, rbac.RESOURCES[obj["kind"]], obj)
    for crd in crds.crds():
        await _established(admin, crd["metadata"]["name"])


async def _apply(admin: Client, resource: Resource, obj: dict[str, Any]) -> None:
    metadata = obj["metadata"]
    await admin.patch(
        resource,
        obj,
        metadata["name"],
        metadata.get("namespace", ""),
        type_=PatchType.APPLY,
        field_manager=_FIELD_MANAGER,
        force=True,
    )


async def _established(admin: Client, name: str) -> None:
    listed: ObjectList[dict[str, Any]] = await admin.list(CRDS, field_selector=f"metadata.name={name}")
    if any(crd["metadata"].get("deletionTimestamp") for crd in listed.items):  # established until it is gone
        raise InstallationStoppedError(
            f"the CustomResourceDefinition {name} is being deleted, with all its records; start again once it is "
            f"gone: `kubectl wait --for=delete crd/{name}`"
        )
    if any(_is_established(crd) for crd in listed.items):
        return
    version = listed.metadata.resource_version
    watch = admin.watch(CRDS, resource_version=version, field_selector=f"metadata.name={name}")
    try:
        async with asyncio.timeout(_READY_SECONDS), contextlib.aclosing(watch) as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED") and _is_established(msgspec.json.decode(event.object)):
                    return
    except TimeoutError:
        raise InstallationStoppedError(
            f"the API server did not establish the CustomResourceDefinition {name} within {_READY_SECONDS:.0f} s; "
            f"`kubectl describe crd {name}` says why"
        ) from None


def _is_established(crd: dict[str, Any]) -> bool:
    conditions = crd.get("status", {}).get("conditions") or []
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


async def _refuse_running(admin: Client) -> None:
    """What a crash left behind is cleared away, but not the webhooks of a command that runs: it would go on
    without being asked. Whoever answers with that one's certificate is it."""
    configurations: ObjectList[dict[str, Any]] = await admin.list(VALIDATING_WEBHOOKS)
    for configuration in configurations.items:
        if configuration["metadata"]["name"] != CONFIGURATION:
            continue
        endpoint = (configuration.get("webhooks") or [{}])[0].get("clientConfig", {})
        url = _server(endpoint.get("url", ""))
        try:
            trust = ssl.create_default_context(cadata=base64.b64decode(endpoint.get("caBundle", "")).decode())
        except (ssl.SSLError, ValueError):
            continue  # somebody edited it: no command of ours would be trusted by it
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_ANSWER_SECONDS)) as session,
                session.get(f"{url}/healthz", ssl=trust),
            ):
                raise UsageError(
                    f"a gate is running on this cluster already, at {url}; end it first, or use another cluster"
                )


async def _refuse_second(admin: Client) -> None:
    """Two gates on one cluster would undo each other's work."""
    ours = {webhook.name for webhook in WEBHOOKS}
    for resource in _WEBHOOK_KINDS:
        configurations: ObjectList[dict[str, Any]] = await admin.list(resource)
        for configuration in configurations.items:
            for webhook in configuration.get("webhooks") or ():
                if webhook["name"] in ours:
                    raise UsageError(
                        f"AlterShield is installed in this cluster already ({resource.kind} "
                        f"{configuration['metadata']['name']}); uninstall it first, or use another cluster"
                    )


def _server(url: str) -> str:
    """Of a webhook's URL, what all webhooks of its gate share."""
    return url.rpartition("/")[0]


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _process(module: str, *arguments: str, log: Path | None) -> Process:
    """Only the options given here count, not our own environment's."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALTERSHIELD_")}
    return Process([sys.executable, "-m", module, *arguments], log, environment)


async def _until_ready(gate: Gate, health_ports: Sequence[int]) -> None:
    died = asyncio.create_task(gate.failed())
    ready = asyncio.create_task(until_ready(health_ports))
    try:
        done, _ = await asyncio.wait({died, ready}, timeout=_READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        died.cancel()
        ready.cancel()
    if not done:
        raise InstallationStoppedError(f"the gate was not ready within {_READY_SECONDS:.0f} s; its log says why")
    done.pop().result()
