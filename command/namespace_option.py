"""The option `--namespace` of the commands."""

from typing import Annotated

import typer

from altershield.api.names import is_name
from command.shell import candidates
from kube_base.errors import UsageError

Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        "-n",
        envvar="ALTERSHIELD_NAMESPACE",
        autocompletion=candidates.namespaces,
        help="The namespace. Default: the context's.",
        show_default=False,
    ),
]


def require_namespace(namespace: str) -> None:
    """UsageError: the value is not the name of a namespace. An empty value stands for the context's namespace."""
    if namespace and (not is_name(namespace) or "." in namespace):
        raise UsageError(f'"{namespace}" is not the name of a namespace; use lower case letters, digits and "-"')
