"""`altershield why`: one screen about a workload or a pod."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from altershield.api.names import is_name
from altershield.process import options
from altershield.views import finding
from altershield.views.named import Named, named
from altershield.views.selection import Selection, is_type, parse
from altershield.views.why.pod import ask_about
from altershield.views.why.reading import explain
from altershield.views.why.refusal import Outcome, PodExplanation, explain_pod
from altershield.views.why.text import lines
from command.app import called_as
from command.namespace_option import Namespace, require_namespace
from command.output import Format, Printed, write
from command.shell import candidates
from command.status.exit_codes import exit_code
from kube_base.access.client import Client
from kube_base.errors import ReportedError, UsageError
from kube_base.resources import PODS

EXIT_REFUSED = 3
"""Of `altershield why pod/NAME`: the deletion or the eviction of the pod would be refused now."""

_POD = "pod"
_POD_SHORT_NAMES = ("po",)


def _proposed(ctx: typer.Context, incomplete: str) -> list[str]:
    """Types and workloads that begin with `incomplete`, for shell completion."""
    return [*(each for each in (_POD,) if each.startswith(incomplete)), *candidates.workloads(ctx, incomplete)]


def why(
    target: Annotated[
        list[str],
        typer.Argument(
            metavar="TYPE/NAME|TYPE NAME",
            autocompletion=_proposed,
            help="The workload or the pod: deploy/web, deploy web, web, pod/web-1.",
            show_default=False,
        ),
    ],
    namespace: Namespace = "",
    output: Printed = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Explain the state of a workload's release, or who refuses the deletion of a pod.

    Of a workload: since when, why, which check and which pods, who decided what, which release gates are closed for it,
    and what to do, with commands to paste: those that you may run, and those that others may run. The exit code is that
    of `altershield status`: 3 if the release is suspended, 4 if it is under way, 5 if it was rolled back, else 0.

    Of a pod: whether it could be deleted and evicted now by this user, and which budget, limit, policy or webhook
    refuses. The command asks the API server by dry runs, which delete nothing and count nowhere. The exit code is 3 if
    one of them is refused, 1 if the API server does not tell, else 0.
    """
    require_namespace(namespace)
    found = named(target, lambda word: _is_pod(word) or is_type(word))
    if any(_is_pod(each.type) for each in found):
        name = _pod_name(found)
        raise typer.Exit(asyncio.run(_pod(context, kubeconfig, namespace, name, output)))
    workload = finding.only(parse(target))
    raise typer.Exit(asyncio.run(_workload(context, kubeconfig, namespace, workload, output, system_namespace)))


def _is_pod(word: str | None) -> bool:
    """Whether kubectl understands the word as the type Pod."""
    return PODS.is_called(word or "", _POD_SHORT_NAMES)


def _pod_name(found: Sequence[Named]) -> str:
    """The name of the pod, if exactly one is named. UsageError otherwise."""
    if len(found) != 1 or found[0].name is None:
        raise UsageError("name one pod, as pod/web-1 or pod web-1")
    name = found[0].name
    if not is_name(name):
        raise UsageError(f'no pod can have the name "{name}"')
    return name


async def _pod(context: str | None, kubeconfig: str | None, namespace: str, name: str, output: Format | None) -> int:
    async with await Client.connect(kubeconfig, context=context) as client:
        where = namespace or client.namespace
        answers = await ask_about(client, where, name)
    made = PodExplanation(where, name, *answers)
    if output is None:
        print("\n".join(explain_pod(made)))
    else:
        write(made, output)
    found = {each.outcome for each in answers}
    if Outcome.REFUSED in found:
        return EXIT_REFUSED
    return ReportedError.exit_code if Outcome.UNKNOWN in found else 0


async def _workload(
    context: str | None,
    kubeconfig: str | None,
    namespace: str,
    selection: Selection,
    output: Format | None,
    system_namespace: str,
) -> int:
    program = called_as(sys.argv[0])
    async with await Client.connect(kubeconfig, context=context) as client:
        found = await explain(client, namespace or client.namespace, selection, system_namespace, program)
    if output is None:
        for each in found.explanations:
            print("\n".join(lines(each)))
    elif len(found.explanations) == 1:
        write(found.explanations[0], output)
    else:
        kinds = (each.workload.kind.lower() for each in found.explanations)
        choice = " or ".join(f"{kind}/{selection.name}" for kind in kinds)
        raise UsageError(f"several workloads have the name {selection.name}: with -o, name {choice}")
    return exit_code(found.outcomes)
