"""A real Kubernetes control plane on loopback: etcd, kube-apiserver and, if present, kube-controller-manager.

The binaries are those of envtest (KUBEBUILDER_ASSETS). Keys, kubeconfigs, the data of etcd and one log per program are
in one directory.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import ssl
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp

from kube_base.processes import Process, free_ports
from kube_sandbox.control_plane_files import ControlPlaneFiles
from kube_sandbox.errors import SandboxError

_API = "kube-apiserver"
_CONTROLLERS = "kube-controller-manager"
_DATA = "etcd-data"  # deleted at each start: the certificates are new as well
_READY_SECONDS = 120.0
_POLL_SECONDS = 0.1
_SERVICE_RANGE = "10.96.0.0/16"
_ISSUER = "https://kubernetes.default.svc.cluster.local"


class ControlPlaneError(SandboxError):
    """A program of the control plane is missing, ended, or did not become ready."""


class ControlPlane:
    """`async with ControlPlane(assets, directory) as plane`: ready inside the block, stopped after it.

    `assets` is the folder with the binaries. `directory` gets the files; it is created if it is missing, readable by
    this user only. `admission_config` and `token_auth_file` are the files for the flags
    `--admission-control-config-file` and `--token-auth-file` of kube-apiserver. With `one_user`,
    kube-controller-manager runs without `--use-service-account-credentials`: all controllers are
    `system:kube-controller-manager`, with the rights of an administrator. Raises ControlPlaneError, which names the log
    of the program."""

    def __init__(
        self,
        assets: Path,
        directory: Path,
        *,
        admission_config: Path | None = None,
        token_auth_file: Path | None = None,
        one_user: bool = False,
    ) -> None:
        self._assets = assets
        self._admission_config = admission_config
        self._token_auth_file = token_auth_file
        self._one_user = one_user
        self._directory = directory
        self._running = contextlib.AsyncExitStack()
        self.kubeconfig = directory / "admin.kubeconfig"
        self.has_controller_manager = (assets / _CONTROLLERS).exists()

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            await self._running.aclose()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._running.aclose()

    async def _start(self) -> None:
        client, peer, secure, controllers = free_ports(4)
        files = ControlPlaneFiles(self._directory, f"https://127.0.0.1:{secure}")
        shutil.rmtree(self._directory / _DATA, ignore_errors=True)
        etcd_url = f"http://127.0.0.1:{client}"
        etcd = await self._run("etcd", *_etcd_flags(self._directory, etcd_url, f"http://127.0.0.1:{peer}"))
        await self._ready(etcd, f"{etcd_url}/health")
        flags = _api_flags(files, etcd_url, secure)
        if self._admission_config:
            flags.append(f"--admission-control-config-file={self._admission_config}")
        if self._token_auth_file:
            flags.append(f"--token-auth-file={self._token_auth_file}")
        api = await self._run(_API, *flags)
        context = files.client_context()
        await self._ready(api, f"{files.url}/readyz", context)
        if self.has_controller_manager:
            flags = _controller_flags(files, self._directory, controllers, one_user=self._one_user)
            manager = await self._run(_CONTROLLERS, *flags)
            # The controllers create this account in each namespace: when it exists, they run.
            account = f"{files.url}/api/v1/namespaces/default/serviceaccounts/default"
            await self._ready(manager, account, context)

    async def _run(self, name: str, *flags: str) -> Process:
        program = self._assets / name
        if not program.exists():
            raise ControlPlaneError(f"there is no {name} in {self._assets}; use a folder that contains it")
        return await self._running.enter_async_context(
            Process([str(program), *flags], self._directory / f"{name}.log", _environment())
        )

    async def _ready(self, process: Process, url: str, context: ssl.SSLContext | None = None) -> None:
        """Wait until `url` returns status 200."""
        try:
            async with asyncio.timeout(_READY_SECONDS), aiohttp.ClientSession() as session:
                while not await _is_ok(session, url, context):
                    if process.ended is not None:
                        raise ControlPlaneError(
                            f"{process.name} ended with {_ending(process.ended)} while starting; "
                            f"see {process.log}: {process.last_line()}"
                        )
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError as error:
            raise ControlPlaneError(
                f"{process.name} was not ready after {_READY_SECONDS:.0f} s; see {process.log}: {process.last_line()}"
            ) from error


async def _is_ok(session: aiohttp.ClientSession, url: str, context: ssl.SSLContext | None) -> bool:
    timeout = aiohttp.ClientTimeout(total=5)
    try:
        async with session.get(url, ssl=context or True, timeout=timeout) as response:
            return response.status == 200
    except (aiohttp.ClientError, TimeoutError, OSError):
        return False


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _etcd_flags(directory: Path, client: str, peer: str) -> list[str]:
    return [
        f"--data-dir={directory / _DATA}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        "--unsafe-no-fsync",  # the data need not survive a crash of the machine
        "--log-level=warn",
    ]


def _api_flags(files: ControlPlaneFiles, etcd_url: str, port: int) -> list[str]:
    return [
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        "--endpoint-reconciler-type=none",  # the API server refuses a loopback address in an Endpoints object
        f"--secure-port={port}",
        f"--service-cluster-ip-range={_SERVICE_RANGE}",
        "--enable-aggregator-routing=true",  # webhooks are called at their endpoints: there is no kube-proxy
        "--allow-privileged=true",
        "--authorization-mode=Node,RBAC",
        f"--client-ca-file={files.ca}",
        f"--tls-cert-file={files.server.certificate}",
        f"--tls-private-key-file={files.server.key}",
        f"--service-account-issuer={_ISSUER}",
        f"--service-account-key-file={files.service_account_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
    ]


def _controller_flags(files: ControlPlaneFiles, directory: Path, port: int, *, one_user: bool) -> list[str]:
    kubeconfig = files.kubeconfig(_CONTROLLERS, f"system:{_CONTROLLERS}", ["system:masters"] if one_user else ())
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--cert-dir={directory / 'controller-certificates'}",
        "--leader-elect=false",
        f"--use-service-account-credentials={'false' if one_user else 'true'}",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--root-ca-file={files.ca}",
        f"--cluster-signing-cert-file={files.ca}",
        f"--cluster-signing-key-file={files.ca_key}",
    ]


def _environment() -> dict[str, str]:
    """The environment of this process without proxies and settings of etcd, which would change the programs."""
    return {
        key: value
        for key, value in os.environ.items()
        if not key.lower().endswith("_proxy") and not key.startswith("ETCD_")
    }
