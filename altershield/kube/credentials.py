"""Where the API server is and who we are to it: from a kubeconfig, or from the pod's service account.

A kubeconfig is read with kubernetes-asyncio (`kubeconfig.py`). A CA without the key usage that Python 3.13 insists on
is accepted, as kubectl does.
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

from altershield.errors import UsageError
from altershield.kube import configuration as of_pods
from altershield.kube.configuration import Configuration
from altershield.kube.plugins import Pair, Plugin, Source, TokenFile

__all__ = ["DEFAULT_NAMESPACE", "Source", "Target", "load", "plugin_pair", "proxy", "ssl_context"]


class Target(NamedTuple):
    """An API server, our credentials for it, and the namespace that is meant where none is named."""

    configuration: Configuration
    namespace: str


DEFAULT_NAMESPACE = "default"
"""The namespace where neither a context nor a service account names one."""


async def load(kubeconfig: str | None, context: str | None) -> Target:
    """The target of a kubeconfig file; without one, of the pod's service account (unless `context` is given), else of
    the default kubeconfig ($KUBECONFIG, ~/.kube/config). UsageError where there is none that can be used."""
    token = of_pods.SERVICE_ACCOUNT / "token"
    if kubeconfig is not None or context is not None or not await asyncio.to_thread(token.exists):
        from altershield.kube import kubeconfig as kubeconfigs  # imports a library that takes half a second

        configuration, namespace = await kubeconfigs.load(_kubeconfig_paths(kubeconfig), context)
        return Target(configuration, namespace or DEFAULT_NAMESPACE)
    try:
        configuration = await asyncio.to_thread(of_pods.in_cluster)
        configuration.refresh_api_key_hook = TokenFile(token)
        await configuration.refresh_api_key_hook(configuration)
    except (OSError, ValueError) as error:
        raise unusable(str(token), str(error)) from error
    return Target(configuration, await asyncio.to_thread(of_pods.own_namespace) or DEFAULT_NAMESPACE)


def unusable(place: str, reason: str) -> UsageError:
    return UsageError(f"no usable Kubernetes credentials in {place}: {reason}; name a kubeconfig with --kubeconfig")


def ssl_context(configuration: Configuration) -> ssl.SSLContext:
    """How the API server is verified and, with a client certificate, how we prove who we are.

    Certificates without the extensions that X.509 strictly asks for are accepted, as Go's clients do: many
    clusters' CAs lack them.
    """
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
        if pair := plugin_pair(configuration):
            _load_pair(context, pair)
    except OSError as error:
        raise UsageError(
            f"the certificates of the kubeconfig for {configuration.host} cannot be used: {error}"
        ) from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def plugin_pair(configuration: Configuration) -> Pair | None:
    """The client certificate that an exec plugin gave, if one did."""
    hook = configuration.refresh_api_key_hook
    return hook.pair if isinstance(hook, Plugin) else None


def _load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    with tempfile.TemporaryDirectory() as directory:  # OpenSSL reads them from a file only; nobody else may
        file = Path(directory, "pair.pem")
        file.write_text(f"{pair.certificate.strip()}\n{pair.key.strip()}\n")
        context.load_cert_chain(file)


def proxy(configuration: Configuration) -> str | None:
    """The proxy on the way to the API server: the kubeconfig's, else the environment's. As for Go's clients,
    loopback needs none, and $NO_PROXY may hold networks."""
    server = urlsplit(str(configuration.host))
    url = configuration.proxy
    if not url and not _goes_direct(server.hostname or ""):
        url = urllib.request.getproxies().get(server.scheme)
    if not url:
        return None
    url = url if "://" in url else f"http://{url}"
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"a {url.partition(':')[0]} proxy is not supported; use an http or https proxy")
    return str(url)


def _goes_direct(host: str) -> bool:
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
