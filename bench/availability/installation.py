"""Installs AlterShield's objects on a cluster for a measurement. Its processes run on this machine."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from altershield.api import deletion_protection, labels, names
from bench.harness.deployments import deployment
from bench.harness.waiting import until
from command.account import Account
from command.install import crds, rbac
from command.install.webhooks import configurations
from command.installation import install
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError, NotFoundError
from kube_base.resources import CRDS, DEPLOYMENTS, MUTATING_WEBHOOKS, NAMESPACES, VALIDATING_WEBHOOKS, Resource

WEBHOOK_SECONDS = 20
"""How long the API server waits for a response. It is long, so that slow responses show as latency, not as failures."""


@dataclass(frozen=True)
class Installation:
    """An installation. `name` is the name of the measurement's governed namespace and of the webhook configurations."""

    name: str
    admin: Client
    admin_kubeconfig: Path
    kubeconfig: Path
    """With the service account of gatekeepers and reconcilers in production."""
    url_for: Callable[[str], str] | None = None
    """Returns the URL of the API server for a process, by its name. None: the URL in the kubeconfig."""

    def kubeconfig_for(self, name: str) -> Path:
        if self.url_for is None:
            return self.kubeconfig
        content = yaml.safe_load(self.kubeconfig.read_text())
        content["clusters"][0]["cluster"] = {"server": self.url_for(name)}
        file = self.kubeconfig.with_name(f"{name}.kubeconfig")
        file.write_text(yaml.safe_dump(content))
        return file


@contextlib.asynccontextmanager
async def installed(kubeconfig: Path, directory: Path) -> AsyncIterator[Installation]:
    """Install AlterShield until the block ends. Objects that existed before stay."""
    async with await Client.connect(str(kubeconfig)) as admin, contextlib.AsyncExitStack() as stack:
        for resource, obj in _objects():
            await _remove_at_the_end(stack, admin, resource, obj)
        await install(admin)
        name = f"availability-{uuid.uuid4().hex[:8]}"
        governed = {labels.GOVERNED: labels.GOVERNED_VALUE, "availability": name}
        await admin.create(NAMESPACES, {"metadata": {"name": name, "labels": governed}})
        stack.push_async_callback(admin.delete, NAMESPACES, name)
        account = await Account.create(admin, directory)
        async with account.renewed():
            yield Installation(name, admin, kubeconfig, account.kubeconfig)


@contextlib.asynccontextmanager
async def webhooks(installation: Installation, port: int, seconds: int | None) -> AsyncIterator[None]:
    """Until the block ends, the API server calls the gatekeepers at `port` for Deployments of the namespace, with
    failurePolicy Fail. `seconds` is the timeout (None: the chart's value)."""
    name = installation.name
    made = configurations(name, f"https://127.0.0.1:{port}", b"", system_namespace=names.SYSTEM_NAMESPACE)
    async with contextlib.AsyncExitStack() as stack:
        for resource, obj in zip((MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS), made, strict=True):
            for webhook in obj["webhooks"]:
                webhook["name"] = f"{webhook['name'].partition('.')[0]}.availability.test"
                webhook["namespaceSelector"] = {"matchLabels": {"availability": name}}
                webhook["failurePolicy"] = "Fail"  # so that failed calls fail releases
                if seconds is not None:
                    webhook["timeoutSeconds"] = seconds
            await installation.admin.create(resource, obj)
            stack.push_async_callback(installation.admin.delete, resource, name)
        yield


async def until_called(installation: Installation) -> None:
    """Return when the API server calls the gatekeepers and gets responses."""
    path = DEPLOYMENTS.path(installation.name)

    async def stamped() -> bool:
        with contextlib.suppress(KubernetesError):
            trial = await installation.admin.request("POST", path, query={"dryRun": "All"}, body=deployment("trial"))
            return labels.VERSION.encode() in trial
        return False

    await until(stamped, "the API server to call the gatekeepers")


def _objects() -> list[tuple[Resource, dict[str, Any]]]:
    permissions = [(rbac.RESOURCES[obj["kind"]], obj) for obj in rbac.objects(names.SYSTEM_NAMESPACE)]
    return [*((CRDS, crd) for crd in crds.crds()), *permissions]


async def _remove_at_the_end(
    stack: contextlib.AsyncExitStack, admin: Client, resource: Resource, obj: dict[str, Any]
) -> None:
    name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")

    async def found() -> dict[str, Any] | None:
        try:
            obj: dict[str, Any] = await admin.get(resource, name, namespace)
        except NotFoundError:
            return None
        return obj

    async def is_gone() -> bool:
        return await found() is None

    async def until_gone() -> None:
        await until(is_gone, f"{resource.kind} {name} to be deleted")

    async def remove() -> None:
        if resource == CRDS:
            unprotected = {"metadata": {"labels": {deletion_protection.LABEL: None}}}
            await admin.patch(resource, unprotected, name)
        await admin.delete(resource, name, namespace)
        await until_gone()

    there = await found()
    if there and "deletionTimestamp" in there["metadata"]:  # an earlier measurement's object is still being deleted
        await until_gone()
        there = None
    if there is None:
        stack.push_async_callback(remove)
