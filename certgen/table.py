"""The table that `show` prints. It contains no keys."""

import datetime
from collections.abc import Sequence

from cryptography import x509
from rich.table import Table

from certgen.certificates import common_name
from certgen.contents import Contents
from certgen.webhook_configurations import WebhookConfiguration


def table(contents: Contents, configurations: Sequence[WebhookConfiguration], now: datetime.datetime) -> Table:
    """The serving certificate, the CAs, and the kinds of the webhook configurations that contain each CA."""
    shown = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("CERTIFICATE", "ROLE", "EXPIRES (UTC)", "LEFT", "PUBLISHED IN"):
        shown.add_column(column, overflow="fold")
    if contents.leaf:
        certificate, issuer = contents.leaf.certificate, contents.issuer
        role = f"serves, by {common_name(issuer)}" if issuer else "serves, by an unknown CA"
        shown.add_row("\n".join(sorted(contents.leaf.hosts)), role, *_life(certificate, now), "")
    for certificate in contents.trusted:
        holders = [
            configuration.resource.kind for configuration in configurations if certificate in configuration.trusted
        ]
        shown.add_row(
            common_name(certificate),
            _role(contents, certificate),
            *_life(certificate, now),
            "\n".join(holders) or "nowhere",
        )
    return shown


def _role(contents: Contents, certificate: x509.Certificate) -> str:
    if certificate in contents.retired:
        return "trusted only"
    return "signs" if certificate == contents.issuer else "signs next"


def _life(certificate: x509.Certificate, now: datetime.datetime) -> tuple[str, str]:
    expires = certificate.not_valid_after_utc
    return f"{expires:%Y-%m-%d %H:%M:%S}", _duration(expires - now)


def _duration(left: datetime.timedelta) -> str:
    """A duration as kubectl shows ages: 43d, 5h, 12m, 30s."""
    seconds = int(left.total_seconds())
    if seconds <= 0:
        return "expired"
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
