"""The address of the API server and the client's credentials.

kubernetes-asyncio has a class like `Configuration`, but importing that library takes half a second. Processes in the
cluster do not need it: only `kube_base.access.kubeconfig` and exec plugins import it.
"""

import contextlib
import inspect
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube_base.errors import UsageError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""The directory in which the kubelet mounts the pod's `token`, its `namespace` and the API server's CA (`ca.crt`)."""


@dataclass
class Configuration:
    """The API server and the credentials for it.

    `refresh_api_key_hook` is called with the configuration before each request. It may change `api_key`.
    `impersonation`: the headers of a kubeconfig's `as` fields, which make each request one of another user.
    `context`: the context of the kubeconfig; empty in a pod.
    """

    host: str = "http://localhost"
    ssl_ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify_ssl: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    api_key: dict[str, str] = field(default_factory=dict, repr=False)
    refresh_api_key_hook: Any = None
    impersonation: tuple[tuple[str, str], ...] = ()
    context: str = ""

    async def get_api_key_with_prefix(self, identifier: str) -> str | None:
        """The renewed key called `identifier`, or None. `BearerToken` is the value of the header `Authorization`."""
        if self.refresh_api_key_hook is not None:
            result = self.refresh_api_key_hook(self)
            if inspect.isawaitable(result):
                await result
        return self.api_key.get(identifier)


def own_namespace() -> str:
    """The namespace of the pod, from the file that the kubelet mounts; empty outside a pod."""
    with contextlib.suppress(OSError):
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    return ""


def in_cluster() -> Configuration:
    """The configuration of the pod's service account, without its token. ValueError or OSError if a part is missing."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ValueError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    ca = SERVICE_ACCOUNT / "ca.crt"
    if not ca.read_bytes():
        raise ValueError(f"{ca} is empty")
    return Configuration(f"https://{f'[{host}]' if ':' in host else host}:{port}", ssl_ca_cert=str(ca))


def unusable(place: str, reason: str) -> UsageError:
    return UsageError(f"no usable Kubernetes credentials in {place}: {reason}; name a kubeconfig with --kubeconfig")
