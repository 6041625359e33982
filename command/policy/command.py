"""The command line of `altershield policy check`."""

import asyncio
import sys
from typing import Annotated

import typer

from altershield.process import options
from altershield.views import history
from altershield.views.history import Found
from altershield.views.selection import parse
from command.namespace_option import Namespace, require_namespace
from command.output import Printed, write
from command.policy.checking import Checked, locally, on_server
from command.policy.documents import policy_check_list
from command.policy.file import read
from command.policy.printing import lines
from kube_base.access.client import Client
from kube_base.errors import ReportedError, UsageError

_MAX_REPLICAS = 1_000_000

Offline = Annotated[
    bool,
    typer.Option(
        "--offline",
        help="Ask no cluster: check the types, the bounds and the names of the fields, and what the reconciler "
        "accepts. The rules of the API server between fields and its admission policies are not checked.",
    ),
]
Against = Annotated[
    str,
    typer.Option(
        "--against",
        metavar="TYPE/NAME",
        help="Also show what the policy would have decided about the last ten releases of this workload, whatever its "
        "selector. The workload is in the namespace of the policy, or of --namespace.",
        show_default=False,
    ),
]

app = typer.Typer(help="Check DefensePolicies before they are applied.", no_args_is_help=True)


class PolicyRefusedError(ReportedError):
    """A policy is not accepted."""


@app.callback()
def _common() -> None:
    """Check DefensePolicies before they are applied."""


@app.command()
def check(
    file: Annotated[
        str, typer.Option("--filename", "-f", help="The file with DefensePolicies, in YAML or JSON. -: stdin.")
    ],
    replicas: Annotated[
        int,
        typer.Option(
            "--replicas", min=0, max=_MAX_REPLICAS, help="The replicas of the workload for which the steps are shown."
        ),
    ] = 10,
    offline: Offline = False,
    against: Against = "",
    namespace: Namespace = "",
    output: Printed = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Check whether DefensePolicies are accepted, and show the steps of a release of so many replicas.

    The command sends each policy to the API server as a dry run, which stores nothing, and applies the rules of the
    reconciler. Which URLs and receivers exist, only the reconciler knows: it says so in the policy's condition
    Accepted. The least time of a release is that of its soaks. The exit code is 1 if a policy is not accepted.

    With --against, it reads the history of the workload. It asks no check again: what the history does not tell is
    Unknown.
    """
    require_namespace(namespace)
    if against and offline:
        raise UsageError("--against reads the history of a workload from the cluster: leave out --offline")
    workloads = parse([against]) if against else []
    if any(not each.name for each in workloads):
        raise UsageError(f"--against {against} names no workload; write TYPE/NAME, as deployment/web")
    found = read(file)

    async def run() -> tuple[list[Checked], list[Found]]:
        if offline:
            return [locally(each, namespace) for each in found], []
        async with await Client.connect(kubeconfig, context=context) as client:
            checked = [await on_server(client, each, namespace or client.namespace) for each in found]
            places = [namespace or each.name.partition("/")[0] for each in checked]
            return checked, [await history.read(client, place, each) for place in places for each in workloads]

    checked, histories = asyncio.run(run())
    made = policy_check_list(checked, replicas, histories)
    if output is None:
        for each in made.items:
            sys.stdout.writelines(f"{line}\n" for line in lines(each))
    else:
        write(made, output)
    refused = [each.name for each in checked if each.problem]
    if refused:
        sys.stdout.flush()
        raise PolicyRefusedError(f"not accepted: {', '.join(refused)}; correct what is said above, then check again")
