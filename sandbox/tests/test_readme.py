"""Runs the examples of the README."""

import asyncio
import contextlib
import json
import re
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kube_sandbox.client.client import Client
from kube_sandbox.client.resources import DEPLOYMENTS
from support.hook import answering, serve

README = (Path(__file__).parents[1] / "README.md").read_text()


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


async def test_webhook_example_runs(tmp_path: Path, has_kubectl: None) -> None:
    names: dict[str, Any] = {"asyncio": asyncio, "subprocess": subprocess}
    exec(examples()[0], names)  # noqa: S102  (the text is from this repository)
    async with serve(tmp_path) as hook:
        hook.respond = answering(allowed=False, status={"message": "the deployment has no owner"})
        configuration = tmp_path / "webhook.json"
        rule = {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
        webhook = {
            "name": "owner.example.com",
            "clientConfig": hook.client_config,
            "rules": [rule],
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "owner"},
            "webhooks": [webhook],
        }
        configuration.write_text(json.dumps(body))
        await names["test_deployment_without_owner_is_denied"](
            tmp_path, SimpleNamespace(configuration=str(configuration))
        )
    assert len(hook.reviews) == 1


async def test_controller_example_runs(tmp_path: Path, has_kubectl: None) -> None:
    @contextlib.asynccontextmanager
    async def controller(kubeconfig: Path) -> AsyncIterator[None]:
        async with await Client.connect(str(kubeconfig)) as client:
            task = asyncio.create_task(label_deployments(client))
            yield
            task.cancel()
            await asyncio.wait([task])

    names: dict[str, Any] = {"asyncio": asyncio, "subprocess": subprocess}
    for example in examples():
        exec(example, names)  # noqa: S102  (the text is from this repository)
    await names["test_controller_adds_the_label"](tmp_path, controller)


async def label_deployments(client: Client) -> None:
    async for event in client.watch(DEPLOYMENTS, resource_version="0"):
        metadata = json.loads(bytes(event.object))["metadata"]
        if event.type == "ADDED":
            label = {"metadata": {"labels": {"seen": "yes"}}}
            await client.patch(DEPLOYMENTS, label, metadata["name"], metadata["namespace"])
