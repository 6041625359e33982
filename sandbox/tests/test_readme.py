"""Runs the examples of the README."""

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp

from kube_base.access.client import Client
from kube_base.resources import DEPLOYMENTS
from kube_sandbox.altershield_server.vocabulary import Call
from support.altershield import BODIES, Caller, receiving
from support.hook import Hook, answering, patching, serve
from support.polling import until

README = (Path(__file__).parents[1] / "README.md").read_text()


def shell_example() -> str:
    """The ten lines, without the installation."""
    (block,) = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
    _, *lines = block.replace("python -m", f"{sys.executable} -m").splitlines()
    return "\n".join(lines)


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


async def test_shell_example_runs(tmp_path: Path, has_kubectl: None) -> None:
    async with serve(tmp_path) as hook:
        label = {"op": "add", "path": "/metadata/labels/owner", "value": "jane"}
        hook.respond = patching(label)
        (tmp_path / "webhook.yaml").write_text(json.dumps(configuration(hook, "MutatingWebhookConfiguration")))
        done = await asyncio.to_thread(
            subprocess.run, ["bash", "-ec", shell_example()], cwd=tmp_path, capture_output=True, text=True
        )
    assert (done.returncode, "owner: jane" in done.stdout) == (0, True), done


async def test_webhook_example_runs(tmp_path: Path, has_kubectl: None) -> None:
    names: dict[str, Any] = {"asyncio": asyncio, "subprocess": subprocess}
    exec(examples()[0], names)  # noqa: S102  (the text is from this repository)
    async with serve(tmp_path) as hook:
        hook.respond = answering(allowed=False, status={"message": "the deployment has no owner"})
        path = tmp_path / "webhook.json"
        path.write_text(json.dumps(configuration(hook, "ValidatingWebhookConfiguration")))
        await names["test_deployment_without_owner_is_denied"](tmp_path, SimpleNamespace(configuration=str(path)))
    assert len(hook.reviews) == 1


def configuration(hook: Hook, kind: str) -> dict[str, Any]:
    """The configuration of a webhook for new Deployments."""
    rule = {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
    webhook = {
        "name": "owner.example.com",
        "clientConfig": hook.client_config,
        "rules": [rule],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": "owner"},
        "webhooks": [webhook],
    }


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


async def test_altershield_example_runs() -> None:
    names: dict[str, Any] = {}
    exec(examples()[2], names)  # noqa: S102  (the text is from this repository)
    async with receiving() as receiver:

        async def release(url: str, token: str) -> str:
            async with aiohttp.ClientSession() as session:
                caller = Caller(SimpleNamespace(url=url), session, token=token)
                await caller.create_order()
                node = await caller.start_batch()
                await until(lambda: len(receiver.bodies) == 1)
                assert (await caller.raw(Call.FINISH, finish(node)))[0] == 500
                assert (await caller.raw(Call.FINISH, finish(node)))[0] == 200
                await until(lambda: len(receiver.bodies) == 2)
            (rule,) = receiver.requests()[1]["verdict"]["rules"]
            return f"failed: {rule['name']} ({rule['owner']}): {rule['msg']}"

        release.callback_url = receiver.url  # type: ignore[attr-defined]
        await names["test_failed_check_stops_the_release"](release)


def finish(node: str) -> bytes:
    return json.dumps({**BODIES[Call.FINISH], "nodeId": node}).encode()
