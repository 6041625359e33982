"""A kubeconfig on this machine for AlterShield's service account, with a token that is renewed."""

import asyncio
import base64
import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import yaml

from altershield.api import names
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError
from kube_base.resources import SERVICE_ACCOUNTS

logger = logging.getLogger(__name__)

_TOKEN_SECONDS = 3600
_RENEW_SECONDS = _TOKEN_SECONDS / 2
_RETRY_SECONDS = 60.0


class Account:
    """The file `kubeconfig` connects to the API server of `admin` as the service account."""

    def __init__(self, admin: Client, directory: Path) -> None:
        self._admin = admin
        self._token = directory / "token"
        self.kubeconfig = directory / "kubeconfig"

    @classmethod
    async def create(cls, admin: Client, directory: Path) -> Self:
        """Create the files in `directory`, which only this user may read."""
        account = cls(admin, directory)
        for file in (account._token, account.kubeconfig):
            file.touch(mode=0o600)
        await account._renew()
        account.kubeconfig.write_text(yaml.safe_dump(await account._content()))
        return account

    @contextlib.asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """Keep the token valid inside the `with` block."""
        renewing = asyncio.create_task(self._keep_renewing())
        try:
            yield
        finally:
            renewing.cancel()

    async def _keep_renewing(self) -> None:
        wait = _RENEW_SECONDS
        while True:
            await asyncio.sleep(wait)
            try:
                await self._renew()
                wait = _RENEW_SECONDS
            except KubernetesError as error:
                logger.warning(
                    "cannot renew the token of the service account, trying again", extra={"cause": str(error)}
                )
                wait = _RETRY_SECONDS

    async def _renew(self) -> None:
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_SECONDS},
        }
        answer: dict[str, Any] = await self._admin.create(
            SERVICE_ACCOUNTS, request, names.SYSTEM_NAMESPACE, name=names.SERVICE_ACCOUNT, subresource="token"
        )
        # replace the file atomically, because the processes may read it now
        new = self._token.with_suffix(".new")
        new.touch(mode=0o600)
        new.write_text(answer["status"]["token"])
        new.replace(self._token)

    async def _content(self) -> dict[str, Any]:
        configuration = self._admin.configuration
        cluster: dict[str, Any] = {"server": self._admin.server}
        if configuration.ssl_ca_cert:
            ca = await asyncio.to_thread(Path(configuration.ssl_ca_cert).read_bytes)
            cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
        if not configuration.verify_ssl:
            cluster["insecure-skip-tls-verify"] = True
        if configuration.tls_server_name:
            cluster["tls-server-name"] = configuration.tls_server_name
        if configuration.proxy:
            cluster["proxy-url"] = configuration.proxy
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "altershield",
            "clusters": [{"name": "altershield", "cluster": cluster}],
            "users": [{"name": "altershield", "user": {"tokenFile": str(self._token)}}],
            "contexts": [{"name": "altershield", "context": {"cluster": "altershield", "user": "altershield"}}],
        }
