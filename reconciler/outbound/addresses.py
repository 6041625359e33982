"""The addresses that a request for a tenant never reaches, whatever the operator allows."""

import ipaddress
from collections.abc import Iterator

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        (
            "169.254.169.254",  # AWS, Azure, Google Cloud and others
            "fd00:ec2::254",  # AWS
            "fd20:ce::254",  # Google Cloud
            "100.100.100.200",  # Alibaba Cloud
            "168.63.129.16",  # Azure's platform service
            "192.0.0.192",  # Oracle Cloud
            "fd00:c1::a9fe:a9fe",  # Oracle Cloud
            "fd00:42::42",  # Scaleway
        ),
    )
)
_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")  # Linux connects 0.0.0.0 to loopback
_SITE_LOCAL = ipaddress.ip_network("fec0::/10")
_TRANSLATED = tuple(
    map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96"))
)  # the last 32 bits are an IPv4 address
_LOCAL_TRANSLATION = ipaddress.IPv6Network("64:ff9b:1::/48")  # the place of the IPv4 address is not known


def forbidden(address: Address, *, loopback: bool = False) -> str:
    """Why a request never reaches this address, or empty. `loopback`: loopback addresses are allowed."""
    return next(filter(None, (_forbidden(form, loopback) for form in forms(address))), "")


def forms(address: Address) -> Iterator[Address]:
    """The address, and the IPv4 addresses that it contains and a gateway may translate it to."""
    yield address
    if isinstance(address, ipaddress.IPv4Address) or int(address) in (0, 1):  # :: and ::1 contain none
        return
    if any(address in network for network in _TRANSLATED):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo


def _forbidden(address: Address, loopback: bool) -> str:
    if address in _METADATA:
        return "a metadata service of a cloud provider"
    if address.is_loopback:
        return "" if loopback else "a loopback address"
    if address.is_unspecified or address in _THIS_NETWORK:
        return "an unspecified address"
    if address.is_link_local or address in _SITE_LOCAL:
        return "a link-local address"
    if address.is_multicast:
        return "a multicast address"
    if isinstance(address, ipaddress.IPv4Address) and address.is_reserved:
        return "a reserved address"
    if address in _LOCAL_TRANSLATION:
        return "an address of an IPv4 translator"
    return ""
