"""The reason why a webhook's certificate is not valid, with the text of Go's crypto/x509.

The texts and the order of the checks of OpenSSL differ from Go's. Therefore this module fetches the certificate again
and checks it in Go's order: dates, names, CA.
"""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

_FETCH_SECONDS = 2


async def reason_invalid(host: str, connect: tuple[str, int], bundle: str, fallback: str) -> str:
    """The reason why the certificate of a host is not valid. `connect` is the address of the host. `fallback` is the
    result when the certificate cannot be fetched."""
    certificate = await _fetch(*connect, server_name=host)
    return fallback if certificate is None else reason(certificate, host, bundle)


def reason(certificate: x509.Certificate, host: str, bundle: str) -> str:
    return _dates(certificate) or _names(certificate, host) or _authority(certificate, bundle)


def _dates(certificate: x509.Certificate) -> str:
    now = datetime.datetime.now(datetime.UTC)
    before, after = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if before <= now <= after:
        return ""
    bound = f"after {_time(after)}" if now > after else f"before {_time(before)}"
    return f"certificate has expired or is not yet valid: current time {_time(now)} is {bound}"


def _names(certificate: x509.Certificate, host: str) -> str:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        names = x509.SubjectAlternativeName([])
    addresses = [str(address) for address in names.get_values_for_type(x509.IPAddress)]
    domains = names.get_values_for_type(x509.DNSName)
    try:
        wanted = str(ipaddress.ip_address(host))
    except ValueError:
        return _domain(certificate, domains, host)
    if wanted in addresses:
        return ""
    if not addresses:
        return f"cannot validate certificate for {wanted} because it doesn't contain any IP SANs"
    return f"certificate is valid for {', '.join(addresses)}, not {wanted}"


def _domain(certificate: x509.Certificate, domains: list[str], host: str) -> str:
    labels = host.lower().split(".")
    for domain in domains:
        pattern = domain.lower().split(".")
        if pattern == labels or (pattern[0] == "*" and pattern[1:] == labels[1:]):
            return ""
    if not domains:
        common = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        if any(str(name.value).lower() == host.lower() for name in common):
            return "certificate relies on legacy Common Name field, use SANs instead"
        return f"certificate is not valid for any names, but wanted to match {host}"
    return f"certificate is valid for {', '.join(domains)}, not {host}"


def _authority(certificate: x509.Certificate, bundle: str) -> str:
    """The text for an unknown CA. It contains a hint when the bundle contains a CA with the same name and another
    key."""
    text = "certificate signed by unknown authority"
    for candidate in x509.load_pem_x509_certificates(bundle.encode()) if bundle else []:
        if candidate.subject != certificate.issuer:
            continue
        try:
            certificate.verify_directly_issued_by(candidate)
        except (InvalidSignature, TypeError, ValueError):
            key = candidate.public_key()
            what = "x509: Ed25519 verification failure"
            if isinstance(key, rsa.RSAPublicKey):
                what = "crypto/rsa: verification error"
            elif isinstance(key, ec.EllipticCurvePublicKey):
                what = "x509: ECDSA verification failure"
            names = candidate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            name = str(names[0].value) if names else ""
            text += f' (possibly because of "{what}" while trying to verify candidate authority certificate "{name}")'
            break
    return text


async def _fetch(host: str, port: int, *, server_name: str) -> x509.Certificate | None:
    """The certificate of a server, or None. The connection is not verified, because no data is sent."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with contextlib.suppress(OSError, TimeoutError, ValueError):
        async with asyncio.timeout(_FETCH_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=server_name)
            certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.close()
            return x509.load_der_x509_certificate(certificate)
    return None


def _time(moment: datetime.datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
