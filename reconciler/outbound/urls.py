"""The URLs that a tenant may name: the hosts that the operator allows, and the form of a URL.

A host is read by one regular expression, and the client gets the same text. So no other parser can see another host in
the URL: a user, a backslash, a space, a percent sign or a character outside of ASCII makes the URL invalid.
"""

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from kube_base.errors import UsageError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

MAX_URL = 2048

_URL = re.compile(r"(?i:(https?))://(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::([0-9]{1,5}))?([/?][!-~]*)?", re.ASCII)
_NAME = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?\.)*[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PORTS = {"http": 80, "https": 443}
_API_SERVER = re.compile(r"kubernetes(?:\.default)?|(?:.+\.)?kubernetes\.default\.svc(?:\..+)?")
"""With any cluster domain. Names below it are those of its endpoints: the nodes of the control plane."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A URL that is well-formed. `host` is a name in lower case and without a dot at its end, or an address."""

    url: str
    host: str
    port: int
    address: Address | None
    """The address if the host is one."""


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The hosts that tenants may name. `allowed_hosts` makes one of the option `--checks-allowed-hosts`."""

    names: frozenset[str]
    suffixes: tuple[str, ...]
    """With a dot at their beginning: `.svc` for `*.svc`. An empty one allows all names."""
    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...] = ()

    def allows(self, destination: Destination) -> bool:
        if destination.address is not None:
            return any(destination.address in network for network in self.networks)
        return destination.host in self.names or destination.host.endswith(self.suffixes)

    def allows_loopback(self, destination: Destination) -> bool:
        """Whether this host may be a loopback address: the list names `localhost`, or exactly this address. A pattern
        never allows it, because each tenant could then reach the ports of the reconciler's pod."""
        if destination.address is not None:
            return any(net.num_addresses == 1 and destination.address in net for net in self.networks)
        return destination.host == "localhost" and destination.host in self.names


def allowed_hosts(texts: Iterable[str]) -> AllowedHosts:
    """Read patterns that are separated by commas or spaces: a name, `*.suffix`, `*`, an address or a network in CIDR
    notation. UsageError: a pattern is none of these."""
    names, suffixes, networks = set(), [], []
    for text in (pattern for each in texts for pattern in re.split(r"[,\s]+", each.lower()) if pattern):
        name = text.removeprefix("*.")
        if text == "*":
            suffixes.append("")
        elif _NAME.fullmatch(name):
            suffixes.append(f".{name}") if name != text else names.add(name)
        else:
            try:
                networks.append(ipaddress.ip_network(text.removeprefix("[").removesuffix("]")))
            except ValueError:
                raise UsageError(
                    f"--checks-allowed-hosts {text!r} is not a host; it must look like hooks.example.com, *.svc, "
                    "10.1.2.3 or 10.1.0.0/16"
                ) from None
    return AllowedHosts(frozenset(names), tuple(suffixes), tuple(networks))


def refusal(url: str, allowed: AllowedHosts) -> str:
    """Why a tenant may not name this URL; empty if this is allowed. The addresses of a name are checked with each
    request."""
    try:
        destination_of(url, allowed)
    except ValueError as error:
        return str(error)
    return ""


def destination_of(url: str, allowed: AllowedHosts) -> Destination:
    """The URL's destination. ValueError with the reason if the URL is not allowed."""
    destination = parse(url)
    if destination.address is None and _API_SERVER.fullmatch(destination.host):
        raise ValueError(f"the host {destination.host} is the API server, which is not called for a check")
    if not allowed.allows(destination):
        raise ValueError(
            f"the host {destination.host} is not allowed; add it to --checks-allowed-hosts (chart: "
            "checks.allowedHosts), or use a Service of this cluster as NAME.NAMESPACE.svc"
        )
    return destination


def parse(url: str) -> Destination:
    """Read a URL. ValueError with the reason if it is not well-formed."""
    if len(url) > MAX_URL:
        raise ValueError(f"the URL is longer than {MAX_URL} characters")
    if not (match := _URL.fullmatch(url)):
        raise ValueError(
            "the URL is not valid; it must look like http://NAME.NAMESPACE.svc:8080/path, without a user, a password, "
            "a fragment, a space or a character outside of ASCII"
        )
    scheme, written, digits = match[1].lower(), match[2], match[3]
    port = int(digits) if digits else _PORTS[scheme]
    if not 0 < port < 65536:
        raise ValueError(f"the URL's port must be a number from 1 to 65535, not {digits}")
    host = written.lower()
    if _NAME.fullmatch(name := host.removesuffix(".")):
        return Destination(url, name, port, None)
    try:
        address: Address = ipaddress.IPv6Address(host[1:-1]) if host.startswith("[") else ipaddress.IPv4Address(host)
    except ValueError:
        raise ValueError(f"the URL's host {written} is neither a DNS name nor a complete IP address") from None
    return Destination(url, str(address), port, address)
