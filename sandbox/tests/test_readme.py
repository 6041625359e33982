"""The examples of the README do what they say."""

import asyncio
import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.cluster.simulation import simulated
from support.hook import answering, serve

README = (Path(__file__).parents[1] / "README.md").read_text()


def examples() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README, re.DOTALL)


async def test_a_webhook_is_tested(tmp_path: Path, has_kubectl: None) -> None:
    names: dict[str, Any] = {"asyncio": asyncio, "subprocess": subprocess}
    exec(examples()[0], names)  # noqa: S102  (our own README)
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
        await names["test_a_deployment_without_an_owner_is_denied"](
            tmp_path, SimpleNamespace(configuration=str(configuration))
        )
    assert len(hook.reviews) == 1


async def test_a_controller_is_tested(tmp_path: Path) -> None:
    source = "async def example(kubeconfig):\n" + "".join(
        f"    {line}\n" for line in examples()[1].splitlines() if not line.startswith("from ")
    )
    names: dict[str, Any] = {"ApiServer": ApiServer, "simulated": simulated}
    exec(source, names)  # noqa: S102  (our own README)
    await names["example"](tmp_path / "kubeconfig")
