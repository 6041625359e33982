"""The webhook configurations of `altershield dev` and `demo`, which contain the address of this machine."""

import asyncio
import base64
import contextlib
import shlex
import ssl
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from altershield.admission.webhooks import WEBHOOKS
from command.uninstall import LeftOverError
from kube_base.access.bodies import ObjectList
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError, NotFoundError
from kube_base.errors import ReportedError, UsageError
from kube_base.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

CONFIGURATION = "altershield-dev"
"""The name of the webhook configurations of this command. Those of the chart have another name."""

_ANSWER_SECONDS = 10.0  # without a listener the connection fails at once; a busy gatekeeper may be slow

WEBHOOK_KINDS = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)


@contextlib.asynccontextmanager
async def withdrawn(admin: Client, kubeconfig: str | None, context: str | None) -> AsyncIterator[None]:
    """Delete the webhook configurations at the end of the block. LeftOverError: they are left; its message also names
    the error of the block."""
    failure: ReportedError | None = None
    try:
        yield
    except ReportedError as error:
        failure = error
        raise
    finally:
        await withdraw(admin, kubeconfig, context, failure)


async def withdraw(
    admin: Client, kubeconfig: str | None, context: str | None, failure: ReportedError | None = None
) -> None:
    """Delete the webhook configurations, at the end or after `failure`. LeftOverError: they are left, because the API
    server does not answer, or because a second signal stopped the deletion."""
    try:
        await remove_webhooks(admin)
    except (KubernetesError, asyncio.CancelledError) as error:
        chosen = (("--kubeconfig", kubeconfig), ("--context", context))
        where = [word for option, value in chosen if value for word in (option, value)]
        kinds = ",".join(resource.kind.lower() for resource in WEBHOOK_KINDS)
        command = shlex.join(["kubectl", *where, "delete", kinds, CONFIGURATION, "--ignore-not-found"])
        why = str(error) or "the command was stopped before they were deleted"
        raise LeftOverError(
            f"{f'{failure}; ' if failure else ''}the webhooks of AlterShield are still registered: {why}; they have "
            "failurePolicy Fail and no gatekeeper, so the API server refuses releases in governed namespaces; to "
            f"delete them, run: {command}; to delete all other objects: altershield uninstall"
        ) from error


async def remove_webhooks(admin: Client) -> None:
    """Delete the webhook configurations of this command, also those of an earlier run."""
    for resource in WEBHOOK_KINDS:
        with contextlib.suppress(NotFoundError):
            await admin.delete(resource, CONFIGURATION)


async def refuse_running(admin: Client) -> None:
    """UsageError: another `altershield dev` or `demo` is running. Its webhooks must stay, because it would run without
    them unnoticed. It is running if the URL of its webhooks answers with a certificate of their CA. The webhooks of a
    command that crashed may be deleted."""
    configurations: ObjectList[dict[str, Any]] = await admin.list(VALIDATING_WEBHOOKS)
    for configuration in configurations.items:
        if configuration["metadata"]["name"] != CONFIGURATION:
            continue
        endpoint = (configuration.get("webhooks") or [{}])[0].get("clientConfig", {})
        url = _server(endpoint.get("url", ""))
        try:
            trust = ssl.create_default_context(cadata=base64.b64decode(endpoint.get("caBundle", "")).decode())
        except (ssl.SSLError, ValueError):
            continue  # the CA was changed, so no running command has a certificate of it
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(_ANSWER_SECONDS)) as session,
                session.get(f"{url}/healthz", ssl=trust),
            ):
                raise UsageError(
                    f"AlterShield is running for this cluster already, at {url}; stop it first, or use another cluster"
                )


async def refuse_second(admin: Client) -> None:
    """UsageError: AlterShield is installed. Two installations in a cluster would revert each other's changes."""
    ours = {webhook.name for webhook in WEBHOOKS}
    for resource in WEBHOOK_KINDS:
        configurations: ObjectList[dict[str, Any]] = await admin.list(resource)
        for configuration in configurations.items:
            for webhook in configuration.get("webhooks") or ():
                if webhook["name"] in ours:
                    raise UsageError(
                        f"AlterShield is installed in this cluster already ({resource.kind} "
                        f"{configuration['metadata']['name']}); uninstall it first, or use another cluster"
                    )


def _server(url: str) -> str:
    """The URL of the gatekeeper, from the URL of one of its webhooks."""
    return url.rpartition("/")[0]
