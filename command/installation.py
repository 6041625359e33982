"""AlterShield on this machine: its objects in the cluster, and its two processes.

The processes use the same service account and permissions as in production. So a missing rule or a wrong identity is
found here and not in a cluster. At the end, all objects are deleted except for those with data: the CRDs and the
namespace.
"""

import asyncio
import contextlib
import dataclasses
import datetime
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from altershield.api import names
from altershield.api.names import INSTALLED
from altershield.process import options
from altershield.process.health import until_ready
from altershield.views import permission
from command.account import Account
from command.dev_removal import Installed, removed
from command.dev_webhooks import (
    CONFIGURATION,
    WEBHOOK_KINDS,
    refuse_running,
    refuse_second,
    remove_webhooks,
    withdrawn,
)
from command.install import crds, policies, rbac, webhooks
from kube_base.access.bodies import ObjectList
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ForbiddenError
from kube_base.errors import ReportedError, UsageError
from kube_base.pki import Authority
from kube_base.processes import Process, free_ports
from kube_base.resources import CRDS, NAMESPACES, Resource
from reconciler.outbound.check_options import CheckOptions
from reconciler.receivers.notification_options import NotificationOptions
from reconciler.server.server_options import ServerOptions
from reconciler.thresholds import Thresholds

LOOPBACK = "127.0.0.1"
"""The default address of the gatekeeper, as the API server reaches it."""

_FIELD_MANAGER = "altershield-dev"
_READY_SECONDS = 30.0
_LIFETIME = datetime.timedelta(days=30)  # of the certificates


class InstallationStoppedError(ReportedError):
    """AlterShield did not become ready, or one of its processes ended."""


class Installation:
    """The running processes. `failed()` waits until one of them ends, and raises InstallationStoppedError, or
    UsageError if the process cannot use its options."""

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
        name, code = waiting[ended], ended.result()
        if code == UsageError.exit_code:
            raise UsageError(f"the {name} cannot use an option, an environment variable or a file; its log names it")
        raise InstallationStoppedError(f"the {name} ended with exit code {code}; its log gives the reason")


@contextlib.asynccontextmanager
async def running_installation(
    kubeconfig: str | None,
    directory: Path,
    thresholds: Thresholds,
    *,
    context: str | None = None,
    host: str = LOOPBACK,
    port: int = 0,
    server: ServerOptions | None = None,
    checks: CheckOptions | None = None,
    notifications: NotificationOptions | None = None,
    log_level: str = options.LOG_LEVEL,
    log: Path | None = None,
    stays: bool = True,
) -> AsyncIterator[Installation]:
    """Install AlterShield's objects and run its processes inside the `with` block.

    `directory`, which only this user may read, gets the certificate and the credentials. `host` is the address of this
    machine, as the API server reaches it. `log` gets the output of the processes (None: the output of this process).
    `stays`: whether the cluster exists after this command. The objects are then deleted at the end.
    """
    async with (
        await Client.connect(kubeconfig, context=context) as admin,
        _installed(admin, directory, server, stays=stays) as account,
    ):
        authority = Authority.create("AlterShield development", lifetime=_LIFETIME)
        certificate, key = _serving_files(authority, directory, host)
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
        server = server or ServerOptions()
        server = dataclasses.replace(server, callback_host=server.callback_host or listen)
        reconciler = _process(
            "reconciler",
            *(*common, str(health_ports[1]), *thresholds.arguments, *server.server_arguments),
            *(checks or CheckOptions()).check_arguments,
            *(notifications or NotificationOptions()).notification_arguments,
            log=log,
        )
        installation = Installation(
            {"gatekeeper": gatekeeper, "reconciler": reconciler}, f"https://{_in_url(host)}:{port}"
        )
        configurations = webhooks.configurations(
            CONFIGURATION, installation.url, authority.pair.certificate, system_namespace=names.SYSTEM_NAMESPACE
        )
        async with gatekeeper, reconciler, account.renewed():
            await _until_ready(installation, health_ports)
            # deleted before the gatekeeper stops, because the API server would refuse releases without it
            async with withdrawn(admin, kubeconfig, context):
                with _permitted(admin):
                    for resource, configuration in zip(WEBHOOK_KINDS, configurations, strict=True):
                        await _apply(admin, resource, configuration)
                yield installation


@contextlib.asynccontextmanager
async def _installed(
    admin: Client, directory: Path, server: ServerOptions | None, *, stays: bool
) -> AsyncIterator[Account]:
    """Install AlterShield's objects, except for the webhooks. Yields the account of its processes, whose credentials
    are in `directory`. `stays`: the objects are deleted at the end."""
    async with contextlib.AsyncExitStack() as stack:
        with _permitted(admin):
            await refuse_running(admin)
            await remove_webhooks(admin)
            await refuse_second(admin)
            granted = access_objects(server=bool(server), callbacks=bool(server and server.callback_port))
            if stays:
                await stack.enter_async_context(removed(admin, granted))
            await install(admin, granted)
            account = await Account.create(admin, directory)
        yield account


def _serving_files(authority: Authority, directory: Path, host: str) -> tuple[Path, Path]:
    """Write a certificate of the gatekeeper for this address, and its key. Returns the two files."""
    serving = authority.issue("gatekeeper", hosts=[host], lifetime=_LIFETIME)
    certificate, key = directory / "tls.crt", directory / "tls.key"
    certificate.write_bytes(serving.certificate)
    key.touch(mode=0o600)
    key.write_bytes(serving.key)
    return certificate, key


@contextlib.contextmanager
def _permitted(admin: Client) -> Iterator[None]:
    """InstallationStoppedError: this user may not install AlterShield."""
    try:
        yield
    except ForbiddenError as error:
        attempt = f"install AlterShield in the cluster at {admin.server}"
        raise InstallationStoppedError(
            permission.refused(attempt, error, permission.role("cluster-admin", ""))
        ) from error


async def install(admin: Client, granted: Sequence[Installed] = ()) -> None:
    """Apply the system namespace, the CRDs, and `granted`, by default `access_objects`. Wait for the CRDs."""
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": names.SYSTEM_NAMESPACE, "labels": INSTALLED},
    }
    await _apply(admin, NAMESPACES, namespace)
    for crd in crds.crds():
        await _apply(admin, CRDS, crd)
    for resource, obj in granted or access_objects():
        await _apply(admin, resource, obj)
    for crd in crds.crds():
        await _established(admin, crd["metadata"]["name"])


def access_objects(*, server: bool = False, callbacks: bool = False) -> list[Installed]:
    """The service account with its permissions, the roles of users, and the admission policies. With `server`, the
    permissions include those for an AlterShield server; with `callbacks`, those for the callback port."""
    account, check = names.service_account_user(), names.service_account_user(name=names.CHECK_ACCOUNT)
    permissions = (
        *rbac.objects(names.SYSTEM_NAMESPACE, server=server, callbacks=callbacks, jobs=True, logs=True),
        *rbac.user_roles(),
    )
    return [
        *((rbac.RESOURCES[obj["kind"]], obj) for obj in permissions),
        *((policies.RESOURCES[obj["kind"]], obj) for obj in policies.policies(account, check)),
    ]


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
    # a CustomResourceDefinition stays established until it is deleted
    if any(crd["metadata"].get("deletionTimestamp") for crd in listed.items):
        raise InstallationStoppedError(
            f"the CustomResourceDefinition {name} is being deleted with all its objects; start again after "
            f"`kubectl wait --for=delete crd/{name}`"
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


def _in_url(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _process(module: str, *arguments: str, log: Path | None) -> Process:
    """A process with these options only, without the ALTERSHIELD variables of this process."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("ALTERSHIELD_")}
    return Process([sys.executable, "-m", module, *arguments], log, environment)


async def _until_ready(installation: Installation, health_ports: Sequence[int]) -> None:
    ended = asyncio.create_task(installation.failed())
    ready = asyncio.create_task(until_ready(health_ports))
    try:
        done, _ = await asyncio.wait({ended, ready}, timeout=_READY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended.cancel()
        ready.cancel()
    if not done:
        raise InstallationStoppedError(
            f"the gatekeeper and the reconciler were not ready within {_READY_SECONDS:.0f} s; see their log"
        )
    done.pop().result()
