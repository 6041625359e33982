"""Where the API server is and who we are to it: from a kubeconfig, or from the pod's service account.

Reading is kubernetes-asyncio's; what it leaves out is added here, each as kubectl does it: the first file of
$KUBECONFIG that names a current context decides, a `tokenFile` is read again, an exec plugin is asked again
before its token expires, and a CA without the key usage that Python 3.13 insists on is accepted.
"""

import asyncio
import contextlib
import ipaddress
import os
import re
import ssl
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from kubernetes_asyncio import config as kube_config
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import incluster_config
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

from altershield.errors import UsageError

_TOKEN_FILE_PERIOD = 60.0  # seconds until a token file is read again, as client-go does
_load_incluster: Callable[[Configuration], None] = kube_config.load_incluster_config

# What kubernetes-asyncio raises for a kubeconfig of another shape, and for one that is wrong.
_MISSHAPEN = (TypeError, KeyError, AttributeError, AssertionError)
_WRONG = (kube_config.ConfigException, yaml.YAMLError, OSError, ValueError)


async def load(kubeconfig: str | None, context: str | None) -> Configuration:
    """The configuration of a kubeconfig file; without one, of the pod's service account, else of the default
    kubeconfig ($KUBECONFIG, ~/.kube/config). UsageError where there is none that can be used."""
    configuration = Configuration()
    in_cluster = kubeconfig is None and os.path.exists(incluster_config.SERVICE_TOKEN_FILENAME)  # noqa: ASYNC240
    place = incluster_config.SERVICE_TOKEN_FILENAME if in_cluster else _kubeconfig_paths(kubeconfig)
    try:
        if in_cluster:
            _load_incluster(configuration)
        else:
            await _load_kubeconfig(configuration, place, context)
    except (*_MISSHAPEN, *_WRONG) as error:
        raise UsageError(
            f"no usable Kubernetes credentials in {place}: {_reason(error)}; name a kubeconfig with --kubeconfig"
        ) from error
    return configuration


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
    except OSError as error:
        raise UsageError(
            f"the certificates of the kubeconfig for {configuration.host} cannot be used: {error}"
        ) from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


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


def _reason(error: Exception) -> str:
    """One line of text; the loader quotes whole entries of the file, with their secrets, in braces."""
    if isinstance(error, _MISSHAPEN):
        return "it does not have the form of a kubeconfig"
    return " ".join(re.sub(r"/\{.*\}", "", str(error), flags=re.DOTALL).split()) or type(error).__name__


def _merge(paths: str) -> KubeConfigMerger:
    if not any(os.path.exists(os.path.expanduser(path)) for path in paths.split(os.pathsep)):
        raise FileNotFoundError("there is no such file")
    return KubeConfigMerger(paths)


async def _load_kubeconfig(configuration: Configuration, paths: str, context: str | None) -> None:
    merger = await asyncio.to_thread(_merge, paths)
    if merger.config is None:
        raise kube_config.ConfigException("the file is empty")
    if context is None:
        named = (file.get("current-context") for file in merger.config_files.values())
        context = next((name for name in named if name), None)
    if not context:
        raise kube_config.ConfigException("no current context is set")
    loader = KubeConfigLoader(merger.config, active_context=context, config_base_path=None)
    user = _user(merger.config, loader)
    if user is None:
        raise kube_config.ConfigException(f"the context {context} names no user that is there")
    await loader.load_and_set(configuration)
    if user.safe_get("tokenFile"):
        token_file = Path(user.path or ".").parent / str(user["tokenFile"])
        configuration.refresh_api_key_hook = _read_again(token_file)
        await configuration.refresh_api_key_hook(configuration)
    elif user.safe_get("exec") and hasattr(loader, "exec_plugin_expiry"):
        configuration.refresh_api_key_hook = _ask_again(loader)


def _user(config: ConfigNode, loader: KubeConfigLoader) -> ConfigNode | None:
    current = loader.current_context
    name = current["context"].get("user") if current else None
    found = config["users"].get_with_name(name, safe=True) if name else None
    return found["user"] if found is not None and found.safe_get("user") else None


def _read_again(path: Path) -> Callable[[Configuration], Awaitable[None]]:
    due = float("-inf")

    async def refresh(configuration: Configuration) -> None:
        nonlocal due
        now = asyncio.get_running_loop().time()
        if now >= due:
            token = await asyncio.to_thread(path.read_text)
            configuration.api_key["BearerToken"] = f"Bearer {token.strip()}"
            due = now + _TOKEN_FILE_PERIOD

    return refresh


def _ask_again(loader: KubeConfigLoader) -> Callable[[Configuration], Awaitable[None]]:
    one_at_a_time = asyncio.Lock()

    async def refresh(configuration: Configuration) -> None:
        async with one_at_a_time:
            await loader.load_from_exec_plugin()  # returns at once while the token is fresh
            configuration.api_key["BearerToken"] = loader.token

    return refresh
