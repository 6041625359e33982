"""Where the API server is and with what we prove who we are, in the form that clients use.

The kubernetes-asyncio library has a class like this one. To import it takes half a second, which a process in the
cluster does not need: only `altershield.kube.kubeconfig` imports the library.
"""

import contextlib
import inspect
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where the kubelet mounts a pod's `token`, its `namespace` and the CA of the API server (`ca.crt`)."""


@dataclass
class Configuration:
    """`refresh_api_key_hook` is called with the configuration before each request, and may change `api_key`."""

    host: str = "http://localhost"
    ssl_ca_cert: str | None = None
    cert_file: str | None = None
    key_file: str | None = None
    verify_ssl: bool = True
    tls_server_name: str | None = None
    proxy: str | None = None
    api_key: dict[str, str] = field(default_factory=dict, repr=False)
    refresh_api_key_hook: Any = None

    async def get_api_key_with_prefix(self, identifier: str) -> str | None:
        """The value of the header `Authorization` for `BearerToken`, renewed; None for none."""
        if self.refresh_api_key_hook is not None:
            result = self.refresh_api_key_hook(self)
            if inspect.isawaitable(result):
                await result
        return self.api_key.get(identifier)


def own_namespace() -> str:
    """The namespace of the pod, which the kubelet writes beside the token; empty where it does not."""
    with contextlib.suppress(OSError):
        return (SERVICE_ACCOUNT / "namespace").read_text().strip()
    return ""


def in_cluster() -> Configuration:
    """The configuration of a pod's service account, without its token. ValueError or OSError where it is not whole."""
    host, port = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ValueError("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    ca = SERVICE_ACCOUNT / "ca.crt"
    if not ca.read_bytes():
        raise ValueError(f"{ca} is empty")
    return Configuration(f"https://{f'[{host}]' if ':' in host else host}:{port}", ssl_ca_cert=str(ca))
