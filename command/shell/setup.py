"""The options that set up completion in a shell. Those of typer take no value: `--install-completion zsh` in bash would
edit the files of bash."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Annotated

import shellingham
import typer
from typer import completion

from kube_base.errors import ReportedError, UsageError

_INSTALL, _SHOW = "--install-completion", "--show-completion"


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"
    POWERSHELL = "powershell"
    PWSH = "pwsh"


_KNOWN = ", ".join(Shell)


def named(arguments: Sequence[str]) -> list[str]:
    """The arguments, with the shell that runs the command if they are an option of completion alone. UsageError: it is
    none of those that are known."""
    if len(arguments) != 1 or arguments[0] not in (_INSTALL, _SHOW):
        return list(arguments)
    try:
        shell, _ = shellingham.detect_shell()
    except shellingham.ShellDetectionFailure:
        shell = ""
    if shell not in list(Shell):
        problem = f"there is no completion for {shell}" if shell else "the shell cannot be told"
        raise UsageError(f"{problem}; name one: {arguments[0]} {'|'.join(Shell)}")
    return [*arguments, shell]


def _install(ctx: typer.Context, shell: Shell | None) -> None:
    _run(completion.install_callback, ctx, shell)


def _show(ctx: typer.Context, shell: Shell | None) -> None:
    _run(completion.show_callback, ctx, shell)


def _run(callback: Callable[..., object], ctx: typer.Context, shell: Shell | None) -> None:
    """Let typer write or print the script, and exit."""
    program = ctx.find_root().info_name or ""
    if shell is not None and " " in program:
        raise UsageError(f"kubectl completes `{program}` if its own completion is set up: `kubectl completion --help`")
    try:
        callback(ctx, None, shell)
    except OSError as error:
        raise ReportedError(f"completion is not set up: {error.filename}: {error.strerror}") from error


Install = Annotated[
    Shell | None,
    typer.Option(
        _INSTALL,
        metavar="SHELL",
        callback=_install,
        is_eager=True,
        help=f"Install completion for {_KNOWN}. Default: for the shell that runs the command.",
        show_default=False,
    ),
]
Show = Annotated[
    Shell | None,
    typer.Option(
        _SHOW,
        metavar="SHELL",
        callback=_show,
        is_eager=True,
        help="Print the script of the completion instead.",
        show_default=False,
    ),
]
