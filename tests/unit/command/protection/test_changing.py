"""What `altershield protect` and `unprotect` say about objects that do not exist."""

import asyncio
from pathlib import Path

import pytest

from command.protection.changing import unprotect
from kube_base.errors import ReportedError
from kube_sandbox.apiserver.server import ApiServer


@pytest.mark.parametrize(
    ("target", "text"),
    [
        (
            "deploy/web",
            'deployment.apps/web not found in namespace "default"; check the name, or set another namespace with -n',
        ),
        ("ns/shop", "namespace/shop not found; check the name$"),
        ("ud/web", "uniteddeployment.apps.kruise.io/web: the cluster has no uniteddeployments.apps.kruise.io"),
    ],
)
async def test_object_or_kind_that_does_not_exist_is_named(tmp_path: Path, target: str, text: str) -> None:
    async with ApiServer() as api:
        (kubeconfig := tmp_path / "kubeconfig").write_text(api.kubeconfig())
        with pytest.raises(ReportedError, match=text):
            await asyncio.to_thread(unprotect, [target], kubeconfig=str(kubeconfig))
