"""The three Kubernetes that demo and tests run on, behind one door.

- a cluster named by a kubeconfig: used as it is;
- real etcd and kube-apiserver from the folder that KUBEBUILDER_ASSETS names, with simulated nodes, and simulated
  controllers where there is no kube-controller-manager;
- else the sandbox's own API with simulated nodes and controllers.
"""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from altershield.errors import UsageError
from altershield.kube.client import Client
from altershield.sandbox.apiserver.server import ApiServer
from altershield.sandbox.cluster.settings import SimulationSettings
from altershield.sandbox.cluster.simulation import Simulation
from altershield.sandbox.control_plane import ControlPlane

ASSETS = "KUBEBUILDER_ASSETS"


@dataclass(frozen=True)
class Backend:
    """A Kubernetes that is up: an admin's kubeconfig, and what it is in a few words."""

    kubeconfig: Path
    description: str


@contextlib.asynccontextmanager
async def open_backend(
    kubeconfig: str | None,
    directory: Path,
    settings: SimulationSettings | None = None,
    *,
    port: int = 0,
    simulate: bool = False,
) -> AsyncIterator[Backend]:
    """Start (or take) the Kubernetes asked for; `directory`, private to this user, takes its files.

    `port` is the sandbox API's own, 0 a free one. `simulate` adds nodes and controllers to the cluster of
    `kubeconfig`, which has none. An error of the simulation is raised at the end of the block.
    """
    settings = settings or SimulationSettings()
    assets = os.environ.get(ASSETS)
    if kubeconfig:
        backend = Backend(Path(kubeconfig), f"the cluster of {kubeconfig}")
        async with _simulated(backend.kubeconfig, settings) if simulate else contextlib.nullcontext():
            yield backend
    elif assets:
        if not (Path(assets) / "kube-apiserver").exists():
            raise UsageError(f"{ASSETS} names {assets}, which holds no kube-apiserver; correct or unset it")
        async with ControlPlane(Path(assets), directory) as plane:
            with_controllers = not plane.has_controller_manager
            async with _simulated(plane.kubeconfig, settings.only_nodes() if not with_controllers else settings):
                yield Backend(plane.kubeconfig, f"kube-apiserver of {assets}")
    else:
        async with ApiServer(port=port) as api:
            path = directory / "admin.kubeconfig"
            path.touch(mode=0o600)
            path.write_text(api.kubeconfig())
            async with _simulated(path, settings):
                yield Backend(path, f"the sandbox's API at {api.url}")


@contextlib.asynccontextmanager
async def _simulated(kubeconfig: Path, settings: SimulationSettings) -> AsyncIterator[None]:
    async with await Client.connect(str(kubeconfig)) as client:
        simulation = asyncio.create_task(Simulation(client, settings).run())
        try:
            yield
        finally:
            simulation.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await simulation
