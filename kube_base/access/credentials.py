"""The API server's address and the client's credentials, from a kubeconfig or from the pod's service account.

`plain_kubeconfig.py` and `kubeconfig.py` read kubeconfigs. A CA without the key usage that Python 3.13 requires is
accepted, as by kubectl.
"""

import asyncio
import contextlib
import ipaddress
import os
import ssl
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from kube_base.access import configuration as of_pods
from kube_base.access.configuration import Configuration, unusable
from kube_base.access.credential_sources import ClientCertificate, TokenFile
from kube_base.errors import UsageError


class ClientConfig(NamedTuple):
    """An API server, the credentials for it, and the default namespace."""

    configuration: Configuration
    namespace: str


DEFAULT_NAMESPACE = "default"
"""The default namespace if neither a context nor a service account has one."""


async def load(kubeconfig: str | None, context: str | None) -> ClientConfig:
    """The ClientConfig of `kubeconfig`. Without `kubeconfig`: that of the pod's service account (if `context` is None),
    else of the default kubeconfig ($KUBECONFIG, ~/.kube/config). UsageError if none can be used."""
    token = of_pods.SERVICE_ACCOUNT / "token"
    if kubeconfig is not None or context is not None or not await asyncio.to_thread(token.exists):
        from kube_base.access import plain_kubeconfig  # imports yaml, which a process in a pod does not need

        paths = _kubeconfig_paths(kubeconfig)
        found = await asyncio.to_thread(plain_kubeconfig.read, paths, context)
        if found is None:
            from kube_base.access import kubeconfig as kubeconfigs  # kubernetes-asyncio takes half a second

            found = await kubeconfigs.load(paths, context)
        configuration, namespace = found
        return ClientConfig(configuration, namespace or DEFAULT_NAMESPACE)
    try:
        configuration = await asyncio.to_thread(of_pods.in_cluster)
        configuration.refresh_api_key_hook = TokenFile(token)
        await configuration.refresh_api_key_hook(configuration)
    except (OSError, ValueError) as error:
        raise unusable(str(token), str(error)) from error
    return ClientConfig(configuration, await asyncio.to_thread(of_pods.own_namespace) or DEFAULT_NAMESPACE)


def ssl_context(configuration: Configuration, certificate: ClientCertificate | None = None) -> ssl.SSLContext:
    """The TLS context that verifies the API server and holds the client certificate, if there is one: `certificate`, or
    that of the configuration's files.

    Certificates without extensions that strict X.509 requires are accepted, as by Go's clients: the CAs of many
    clusters lack these extensions.
    """
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
        if certificate is not None:
            _load_client_certificate(context, certificate)
    except OSError as error:
        raise UsageError(
            f"the certificates in the kubeconfig for {configuration.host} cannot be used: {error}"
        ) from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _load_client_certificate(context: ssl.SSLContext, pair: ClientCertificate) -> None:
    with tempfile.TemporaryDirectory() as directory:  # OpenSSL reads them only from files; the directory is private
        file = Path(directory, "pair.pem")
        file.write_text(f"{pair.certificate.strip()}\n{pair.key.strip()}\n")
        context.load_cert_chain(file)


def proxy(configuration: Configuration) -> str | None:
    """The URL of the proxy to the API server, from the kubeconfig or else from the environment. As in Go's clients,
    loopback addresses use no proxy, and $NO_PROXY may contain networks."""
    server = urlsplit(str(configuration.host))
    url = configuration.proxy
    if not url and not _needs_no_proxy(server.hostname or ""):
        url = urllib.request.getproxies().get(server.scheme)
    if not url:
        return None
    url = url if "://" in url else f"http://{url}"
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"a {url.partition(':')[0]} proxy is not supported; use an http or https proxy")
    return str(url)


def _needs_no_proxy(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or bool(urllib.request.proxy_bypass(host))
    exceptions = urllib.request.getproxies().get("no", "").split(",")
    return address.is_loopback or "*" in exceptions or any(address in network for network in _networks(exceptions))


def _networks(texts: Iterable[str]) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for text in texts:
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(text.strip(), strict=False)


def _kubeconfig_paths(kubeconfig: str | None) -> str:
    return kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
