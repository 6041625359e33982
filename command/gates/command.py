"""The command line of `altershield gates`."""

import asyncio
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from altershield.api.names import is_name
from altershield.process import options
from altershield.views.durations import age
from altershield.views.gates.documents import answer_list, gate_list
from altershield.views.gates.model import Gate
from altershield.views.gates.reading import Asked, ask, ask_about, read
from altershield.views.names import printable
from altershield.views.selection import Selection, parse
from altershield.workloads import ADAPTERS
from altershield.workloads.adapter import Adapter
from command import manifests
from command.columns import Columns
from command.namespace_option import Namespace, require_namespace
from command.output import Format, Printed, write
from command.shell import candidates
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, NotFoundError
from kube_base.access.server_clock import ServerClock
from kube_base.errors import ReportedError, UsageError
from kube_base.times import unix

EXIT_CLOSED = 3
"""Of `altershield gates`: the workload may not be released now, or without a workload: a gate is closed."""

_HEADER = ("KIND", "GATE", "EFFECT", "MODE", "STATE", "CHANGES", "REASON")


def gates(
    workload: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TYPE/NAME]",
            autocompletion=candidates.workloads,
            help="The workload: may it be released now? Without it: the gates alone.",
            show_default=False,
        ),
    ] = None,
    namespace: Namespace = "",
    filename: Annotated[
        str,
        typer.Option("--filename", "-f", help="A file with workloads: would kubectl apply release them now? -: stdin."),
    ] = "",
    output: Printed = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Show the release windows, freezes, limits and field guards, and whether a workload may be released now.

    With a workload or a file, the command asks the API server by a dry run, which changes nothing: the answer is that
    of a release by this user. It takes the permission to release the workload. The exit code is 3 if it would be
    denied, also for another reason than a gate. Without a workload, it is 3 if a gate is closed. Else it is 0.
    """
    require_namespace(namespace)
    if workload and filename:
        raise UsageError("name either a workload or a file")
    named = named_one(parse(workload)) if workload else None
    files = [_workload(each, filename) for each in manifests.read(filename, "a workload")] if filename else []
    code = asyncio.run(_run(context, kubeconfig, namespace, named, files, output, system_namespace))
    raise typer.Exit(code)


def named_one(found: Sequence[Selection]) -> Selection:
    """The only workload that is named. UsageError: there are others, or only a type."""
    if len(found) != 1 or not found[0].name:
        raise UsageError("name one workload, as deploy/web")
    return found[0]


def _workload(obj: Any, file: str) -> tuple[Adapter, dict[str, Any]]:
    """A manifest and its adapter. UsageError: it is no workload that AlterShield governs."""
    kind = (obj.get("apiVersion"), obj.get("kind")) if isinstance(obj, dict) else ("", "")
    adapter = next((each for each in ADAPTERS if (each.resource.api_version, each.resource.kind) == kind), None)
    if adapter is None:
        raise UsageError(f"{file} has {kind[1] or 'an object without kind'}, which AlterShield does not govern")
    metadata = obj.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not is_name(name):
        raise UsageError(f"a {kind[1]} in {file} has no valid metadata.name")
    return adapter, obj


async def _run(
    context: str | None,
    kubeconfig: str | None,
    namespace: str,
    named: Selection | None,
    files: list[tuple[Adapter, dict[str, Any]]],
    output: Format | None,
    system_namespace: str,
) -> int:
    clock = ServerClock()
    async with await Client.connect(kubeconfig, context=context) as client:
        client.on_date(clock.update)
        where = namespace or client.namespace
        answers: list[Asked] = []
        if named is not None:
            answers.append(await asked(client, named, where, clock()))
        for adapter, manifest in files:
            place = str(manifest["metadata"].get("namespace") or where)
            answers.append(await ask_about(client, adapter, manifest, place))
        found = await read(client, (where, system_namespace), clock()) if not answers or output is None else None
        now = clock()
    shown, unread = (found.gates, found.unread) if found is not None else ([], ())
    if output is not None:
        write(answer_list(answers) if answers else gate_list(shown, unread), output)
    else:
        for each in answers:
            _lines(explained(each, now))
        _lines(table(shown))
        warn_of(unread)
    if answers:
        return 0 if all(each.verdict.allowed for each in answers) else EXIT_CLOSED
    return EXIT_CLOSED if any(each.refuses for each in shown) else 0


def warn_of(unread: Sequence[str]) -> None:
    """Warn of the namespaces whose gates are missing in what is printed."""
    for each in unread:
        print(f"Warning: you may not read the gates of the namespace {each}; ask for the role view", file=sys.stderr)


async def asked(client: Client, named: Selection, namespace: str, now: float) -> Asked:
    """The answer about a workload. Without a type, the first kind that has one of this name."""
    missing: NotFoundError | None = None
    for adapter in named.adapters:
        try:
            return await ask(client, adapter, named.name, namespace, now)
        except NotFoundError as error:
            missing = error
            continue
        except ApiError as error:
            raise ReportedError(f"cannot ask about {named.argument}: {error}") from error
    raise UsageError(f"{named.described} not found in namespace {namespace}: {missing}")


def explained(asked: Asked, now: float) -> list[str]:
    """The lines about one workload."""
    name, verdict = asked
    if verdict.allowed:
        return [f"{name} may be released now."]
    lines = [f"{name} may not be released now:", f"  {printable(verdict.message)}"]
    if verdict.opens_at:
        lines.append(f"  It may be released from {verdict.opens_at} on (in {age(unix(verdict.opens_at) - now)}).")
    return lines


def table(shown: Sequence[Gate]) -> list[str]:
    """A line for each gate, and the header."""
    if not shown:
        return ["No release gates found."]
    rows = [
        (
            each.kind,
            f"{each.namespace}/{each.name}",
            each.effect,
            each.mode,
            _state(each),
            each.changes or ("-" if each.open is None else "<unknown>"),
            printable("; ".join(filter(None, (each.reason, each.problem)))),
        )
        for each in shown
    ]
    return Columns(len(_HEADER)).lines([_HEADER, *rows])


def _state(gate: Gate) -> str:
    """A FieldGuard is neither open nor closed."""
    if gate.open is None:
        return "by fields"
    return "open" if gate.open else f"closed since {gate.since}" if gate.since else "closed"


def _lines(found: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in found)
