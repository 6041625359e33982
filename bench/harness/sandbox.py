"""A sandbox in a process of its own, and a reconciler in this process."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from altershield.api import labels, names
from bench.harness.servers import module
from command.install import crds
from kube_base.access.client import Client
from kube_base.resources import CRDS, NAMESPACES
from reconciler.manager import Manager
from reconciler.options import Options
from reconciler.server.server_client import ServerClient

_START_SECONDS = 150.0
NAMESPACE = "bench"
"""The governed namespace of the measurements."""


@contextlib.asynccontextmanager
async def sandbox(*arguments: str) -> AsyncIterator[tuple[Path, str]]:
    """Run a sandbox with these arguments. Yields its kubeconfig and its output until it serves."""
    with tempfile.TemporaryDirectory() as directory:
        kubeconfig = Path(directory, "kubeconfig")
        process = await asyncio.create_subprocess_exec(
            *module("command", "sandbox", "--output", str(kubeconfig), *arguments), stderr=asyncio.subprocess.PIPE
        )
        said, text = process.stderr, b""
        try:
            async with asyncio.timeout(_START_SECONDS):
                while said is not None and b"Serving" not in text:
                    line = await said.readline()
                    if not line:
                        raise RuntimeError(f"the sandbox ended: {text.decode()}")
                    text += line
            yield kubeconfig, text.decode()
        finally:
            with contextlib.suppress(ProcessLookupError):  # it has ended by itself
                process.terminate()
            await process.wait()


async def govern(admin: Client, namespace: str) -> None:
    """Create what a reconciler needs: the system namespace, a governed namespace, and the CRDs."""
    await admin.create(NAMESPACES, namespace_of(names.SYSTEM_NAMESPACE))
    await admin.create(NAMESPACES, namespace_of(namespace, governed=True))
    for crd in crds.crds():
        await admin.create(CRDS, crd)


def namespace_of(name: str, *, governed: bool = False) -> dict[str, Any]:
    own = {labels.GOVERNED: labels.GOVERNED_VALUE} if governed else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": own}}


@contextlib.asynccontextmanager
async def reconciling(client: Client, server: ServerClient | None = None, **options: Any) -> AsyncIterator[Manager]:
    """Run a reconciler in this process until the block ends, with default options but these. Yields when its caches
    are full."""
    manager = Manager(
        client, Options(**{"identity": "bench", "lease_duration": 60, "metrics_port": 0, **options}), server=server
    )
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(manager.run(stop))
        for informer in manager.caches.required:
            await informer.wait_synced()
        yield manager
        stop.set()


def writes(manager: Manager) -> Counter[str]:
    """The reconciler's writes so far, by verb and kind, without those of its settings at the start."""
    return Counter(
        {
            f"{sample.labels['verb']} {sample.labels['kind']}": int(sample.value)
            for family in manager.metrics.writes.collect()
            for sample in family.samples
            if sample.name.endswith("_total") and sample.value and sample.labels["kind"] != "OpsConfigInfo"
        }
    )
