"""The options for the checks of DefensePolicies, of the commands that run a reconciler."""

from dataclasses import dataclass, field
from typing import Annotated

import typer

from altershield.process.parameters import arguments

ALLOWED_HOSTS = ("*.svc", "*.svc.cluster.local")
"""Services of this cluster. Not `*.cluster.local`: the names of pods there (`10-1-2-3.NAMESPACE.pod.cluster.local`) are
addresses that anybody can choose, because CoreDNS answers each of them by default. Not `NAME.NAMESPACE`: it may also be
a name of the Internet."""

AllowedHosts = Annotated[
    list[str],
    typer.Option(
        "--checks-allowed-hosts",
        envvar="ALTERSHIELD_CHECKS_ALLOWED_HOSTS",
        help="The hosts that the URLs of checks may name, separated by commas or as repeated options: names, "
        "*.suffix, IP addresses or networks.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """`reconciler.outbound.urls` checks the values."""

    checks_allowed_hosts: AllowedHosts = field(default_factory=lambda: [",".join(ALLOWED_HOSTS)])

    @property
    def check_arguments(self) -> list[str]:
        """The command-line arguments for `python -m reconciler`."""
        return arguments(self, CheckOptions)
