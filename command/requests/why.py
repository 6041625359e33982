"""`altershield why`: one screen about a workload or a pod."""

import asyncio
import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from altershield.api.change_pod import ChangePod
from altershield.api.names import is_name
from altershield.process import options
from altershield.views import finding
from altershield.views.gates.closed import closed_for
from altershield.views.named import Named, named
from altershield.views.releases import objects
from altershield.views.releases.batches import batches_of
from altershield.views.releases.model import Release, demand, outcomes, shown
from altershield.views.releases.reading import Reader
from altershield.views.releases.words import with_words
from altershield.views.selection import Selection, is_type, parse, types
from altershield.views.why.pod import ask_about
from altershield.views.why.refusal import Outcome, described, explain_pod
from altershield.views.why.release import explain
from altershield.workloads import pods as pod_projections
from altershield.workloads.blocking import blocking_pods
from altershield.workloads.pods import Pod
from altershield.workloads.workload import Workload
from command.app import called_as
from command.namespace_option import Namespace, require_namespace
from command.status.exit_codes import exit_code
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError
from kube_base.errors import ReportedError, UsageError
from kube_base.resources import PODS

EXIT_REFUSED = 3
"""Of `altershield why pod/NAME`: the deletion or the eviction of the pod would be refused now."""

_POD = "pod"
_POD_SHORT_NAMES = ("po",)


class Format(StrEnum):
    JSON = "json"
    YAML = "yaml"


def _types(incomplete: str) -> list[str]:
    """The types that begin with `incomplete`, for shell completion."""
    return [*types(incomplete), *(each for each in (_POD,) if each.startswith(incomplete))]


def why(
    target: Annotated[
        list[str],
        typer.Argument(
            metavar="TYPE/NAME|TYPE NAME",
            autocompletion=_types,
            help="The workload or the pod: deploy/web, deploy web, web, pod/web-1.",
            show_default=False,
        ),
    ],
    namespace: Namespace = "",
    output: Annotated[
        Format | None,
        typer.Option("--output", "-o", help="Of a pod, the format: json or yaml.", show_default=False),
    ] = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Explain the state of a workload's release, or who refuses the deletion of a pod.

    Of a workload: since when, why, which check and which pods, who decided what, which release gates are closed for it,
    and what to do, with commands to paste. The exit code is that of `altershield status`: 3 if the release is
    suspended, 4 if it is under way, 5 if it was rolled back, else 0.

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
    if output is not None:
        where = f" -n {namespace}" if namespace else ""
        run = f"{called_as(sys.argv[0])} status {' '.join(target)}{where} -o {output}"
        raise UsageError(f"-o is for pods; for the release of a workload, run: {run}")
    raise typer.Exit(asyncio.run(_workload(context, kubeconfig, namespace, workload, system_namespace)))


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
    match output:
        case Format.JSON:
            sys.stdout.write(objects.to_json(described(name, where, *answers)))
        case Format.YAML:
            sys.stdout.write(objects.to_yaml(described(name, where, *answers)))
        case _:
            print("\n".join(explain_pod(name, where, *answers)))
    found = {each.outcome for each in answers}
    if Outcome.REFUSED in found:
        return EXIT_REFUSED
    return ReportedError.exit_code if Outcome.UNKNOWN in found else 0


async def _workload(
    context: str | None, kubeconfig: str | None, namespace: str, selection: Selection, system_namespace: str
) -> int:
    async with await Client.connect(kubeconfig, context=context) as client:
        where = namespace or client.namespace
        snapshot = await Reader(client, where, [selection]).read()
        demand(snapshot, [selection], where)
        found = [each for each in shown(snapshot) if each.workload.metadata.name == selection.name]
        found = await with_words(client, found, time.time())
        for uid in dict.fromkeys(each.workload.metadata.uid for each in found):
            own = [each for each in found if each.workload.metadata.uid == uid]
            batches, blocking = await _batches(client, own), await _blocking(client, own[0].workload)
            closed = await closed_for(client, own[0].workload, system_namespace, time.time())
            print("\n".join(explain(own, batches, time.time(), called_as(sys.argv[0]), blocking, closed)))
        return exit_code(outcomes(snapshot))


async def _blocking(client: Client, workload: Workload) -> list[Pod]:
    """The pods of older versions for which the workload's controller waits; empty if the user may not read pods."""
    if not workload.waits_for_ready:
        return []
    try:
        listed = await client.list(
            PODS, workload.metadata.namespace, as_=msgspec.Raw, label_selector=workload.list_selector
        )
    except ForbiddenError:
        return []
    pods = map(pod_projections.read, listed.items)
    found = blocking_pods(workload, (pod for pod in pods if pod.owner.uid == workload.metadata.uid))
    return sorted(found, key=lambda pod: pod.metadata.name)


async def _batches(client: Client, found: Sequence[Release]) -> list[ChangePod]:
    """The ChangePods of the present release."""
    present = next((each for each in found if each.present and each.stored is not None), None)
    return [] if present is None or present.stored is None else await batches_of(client, present.stored)
