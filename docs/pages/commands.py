"""The commands, from their command lines."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_args

import gatekeeper.__main__
import reconciler.__main__
from certgen.command import app as certgen
from certgen.errors import CertificateError
from command.app import command_line
from command.breaker import EXIT_OPEN
from command.breaker import app as breaker
from command.budgets import EXIT_EXHAUSTED
from command.notify import app as notify
from command.protection import EXIT_STAYS
from command.requests import EXIT_REFUSED
from command.status import EXIT_ROLLED_BACK, EXIT_SUSPENDED, EXIT_UNDER_WAY
from docs.pages.markdown import GENERATED, table
from kube_base.errors import ReportedError, UsageError

_HEAD = f"""\
# Commands

{GENERATED}

People run `altershield`. The other three commands run in the containers of the [chart](../operate.md#what-runs). Most
options can also be set with the environment variable in the same row; the option takes precedence. `--help` shows the
same texts.

![altershield --help: the commands in groups, to look, decide, protect and operate](../pictures/help.svg)

`KUBECONFIG` has the same meaning as for `kubectl`. `KUBEBUILDER_ASSETS` names a folder with `etcd` and `kube-apiserver`
for `demo` and `sandbox`.

## Exit codes

"""

_EXIT_CODES = (
    (
        0,
        "all",
        "done; `demo`: every step had the expected outcome; `status`: every present release that is shown is a "
        "`Success`; `rollback --wait`: the version that was asked for is the present one, and a `Success`; `dev`, "
        "`sandbox` and the containers: ended by Ctrl-C or SIGTERM",
    ),
    (
        ReportedError.exit_code,
        "all",
        "the command failed; the sentence on stderr says why. `altershield status`: also if the workload does not "
        "exist or has no release, if there is no release to show (unless with `--allow-empty`), if the namespace does "
        "not exist, or if the user may not list releases. Commands that ask for a confirmation: the answer was no",
    ),
    (UsageError.exit_code, "all", "a wrong option, variable or file"),
    (EXIT_SUSPENDED, "`altershield status`", "a present release that is shown is suspended"),
    (
        EXIT_STAYS,
        "`altershield protected`",
        "an object that is shown stays although its owner or namespace is deleted: only its label keeps it",
    ),
    (EXIT_OPEN, "`altershield breaker status`", "a breaker that is shown is open"),
    (
        EXIT_EXHAUSTED,
        "`altershield budgets`",
        "a PodUnavailableBudget that is shown has the mode `Enforce` and allows no disruption now",
    ),
    (EXIT_REFUSED, "`altershield why pod/NAME`", "the deletion or the eviction of the pod would be refused now"),
    (CertificateError.exit_code, "`certgen`", "a certificate, a key or their Secret cannot be used"),
    (
        EXIT_UNDER_WAY,
        "`altershield status`",
        "a release that is shown is under way, none is suspended; with `--wait`: it was still under way after "
        "`--timeout`",
    ),
    (
        EXIT_ROLLED_BACK,
        "`altershield status`",
        "a release that is shown was rolled back, none is suspended or under way",
    ),
    (130, "`altershield` except for `dev`, `sandbox`", "ended by Ctrl-C; the objects that must not stay were deleted"),
    (143, "`altershield` except for `dev`, `sandbox`", "the same by SIGTERM"),
)

_EXAMPLE = """
The exit code of `altershield status` is about the present release of each workload. The release is under way while its
state is `Init`, `Running`, `TimeOutPreThreshold` or `Rollback`, or while it has no ChangeWorkload yet. This includes
releases that are stalled, and repairs. It also includes pod templates that changed while no gatekeeper reviewed them:
the version label is then that of an earlier template, whose `Success` does not count. A pipeline waits for the end of
its release:

```sh
altershield status deployment/web -n shop --wait --timeout=10m
```

## Like kubectl

`altershield` uses the same cluster, context and namespace as `kubectl`, and `status` has the options `-n`, `-A`, `-w`
and `-o` of `kubectl`. Name workloads as for `kubectl`: `deployment/web`, `deploy/web`, `sts/db`, or `deploy web api`.
`web` alone means the workloads of that name of all types. Commands about one workload or pod also take `deploy web` and
`pod web-1`.

The program `kubectl-altershield` is installed beside `altershield`. If it is on your `PATH`, every command is also a
command of `kubectl`:

```sh
kubectl altershield status deployment/web -n shop
```

Of `status`, `-o json` and `-o yaml` print a `List` of the [ChangeWorkloads](kinds.md#changeworkload) as they are in the
cluster, and `-o name` their names. [What the other commands print](views.md) has JSON Schemas.

```console
$ kubectl -n shop get $(altershield status deployment/web -n shop -o name)
NAME       STATUS    CREATETIME
web--x--…   Success   …
```

Completion for bash, zsh, fish and PowerShell: `altershield --install-completion` installs it for the shell in which you
run it, or for the one that you name after it; `altershield --show-completion` prints the script. `kubectl` (1.26 or
newer) completes `kubectl altershield` if its own completion is set up. `altershield --version` prints the version.
"""


def page() -> str:
    codes = table(("code", "of", "means"), [(str(code), of, means) for code, of, means in _EXIT_CODES])
    return "\n".join([_HEAD.rstrip("\n") + "\n", codes + _EXAMPLE, *_sections()])


def _sections() -> Iterator[str]:
    for group, name in ((command_line(), "altershield"), (certgen, "python -m certgen")):
        for command in group.registered_commands:
            if command.callback is not None:
                yield _section(f"{name} {command.callback.__name__}", command.callback)
    for command in breaker.registered_commands:
        if command.callback is not None:
            yield _section(f"altershield breaker {command.name or command.callback.__name__}", command.callback)
    for command in notify.registered_commands:
        if command.callback is not None:
            yield _section(f"altershield notify {command.name}", command.callback)
    yield _section("python -m gatekeeper", gatekeeper.__main__.gatekeeper)
    yield _section("python -m reconciler", reconciler.__main__.reconciler)


def _section(name: str, function: Callable[..., Any]) -> str:
    parameters = inspect.signature(function).parameters.values()
    rows = [_option(parameter, parameter.annotation) for parameter in parameters]
    return f"## `{name}`\n\n{inspect.getdoc(function)}\n\n" + table(("option", "default", "variable", "meaning"), rows)


def _option(parameter: inspect.Parameter, hint: Any) -> tuple[str, str, str, str]:
    _, *metadata = get_args(hint)
    info = metadata[-1]
    # typer stores the first name of an option as its default, and the others as its declarations
    names = sorted([info.default, *(info.param_decls or ())] if info.default is not ... else [parameter.name.upper()])
    if parameter.default is inspect.Parameter.empty:
        shown = "required"
    else:
        default = getattr(parameter.default, "value", parameter.default)  # of an enumeration
        shown = "" if default is None or default is False or default in ("", []) else f"`{default}`"
    bounds = (
        "" if info.min is None else f" From {info.min}." if info.max is None else f" From {info.min} to {info.max}."
    )
    return f"`{'`, `'.join(names)}`", shown, f"`{info.envvar}`" if info.envvar else "", f"{info.help}{bounds}"
