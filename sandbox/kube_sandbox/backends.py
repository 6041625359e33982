"""The three Kubernetes that demo and tests run on, behind one door.

- a cluster named by a kubeconfig: used as it is;
- real etcd and kube-apiserver from the folder that KUBEBUILDER_ASSETS names, with simulated nodes, and simulated
  controllers where there is no kube-controller-manager;
- else the sandbox's own API with simulated nodes and controllers.
"""

import contextlib
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kube_sandbox.apiserver.server import ApiServer
from kube_sandbox.client.client import Client
from kube_sandbox.client.resources import CLUSTER_ROLES
from kube_sandbox.cluster.settings import SimulationSettings
from kube_sandbox.cluster.simulation import simulated
from kube_sandbox.control_plane import ControlPlane
from kube_sandbox.errors import SettingError

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

    `port` is the sandbox API's own, 0 a free one. `simulate` adds nodes to the cluster of `kubeconfig`, which has
    none, and controllers if it has none either. An error of the simulation is raised at the end of the block.
    """
    settings = settings or SimulationSettings()
    assets = os.environ.get(ASSETS)
    if kubeconfig:
        backend = Backend(Path(kubeconfig), f"the cluster of {kubeconfig}")
        if simulate and await _has_controllers(backend.kubeconfig):
            settings = settings.only_nodes()
        async with simulated(backend.kubeconfig, settings) if simulate else contextlib.nullcontext():
            yield backend
    elif assets:
        if not (Path(assets) / "kube-apiserver").exists():
            raise SettingError(f"{ASSETS} names {assets}, which holds no kube-apiserver; correct or unset it")
        async with ControlPlane(Path(assets), directory) as plane:
            with_controllers = not plane.has_controller_manager
            async with simulated(plane.kubeconfig, settings.only_nodes() if not with_controllers else settings):
                yield Backend(plane.kubeconfig, f"kube-apiserver of {assets}")
    else:
        async with ApiServer(port=port) as api:
            path = directory / "admin.kubeconfig"
            path.touch(mode=0o600)
            path.write_text(api.kubeconfig())
            async with simulated(path, settings):
                yield Backend(path, f"the sandbox's API at {api.url}")


async def _has_controllers(kubeconfig: Path) -> bool:
    """Whether a kube-controller-manager is or was at work: it fills in the rules of the ClusterRoles that aggregate
    others, which the API server makes without any. (It need not have a Lease.)"""
    async with await Client.connect(str(kubeconfig)) as client:
        view: dict[str, Any] = await client.get(CLUSTER_ROLES, "view")
    return bool(view.get("rules"))
