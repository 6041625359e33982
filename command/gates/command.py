"""The command line of `altershield gates`."""

import asyncio
import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from altershield.api.names import is_name
from altershield.process import options
from altershield.views.durations import age
from altershield.views.gates.model import Gate, described
from altershield.views.gates.reading import Verdict, ask, ask_about, read
from altershield.views.names import printable
from altershield.views.releases import objects
from altershield.views.selection import Selection, parse, types
from altershield.workloads import ADAPTERS
from altershield.workloads.adapter import Adapter
from command import manifests
from command.columns import Columns
from command.namespace_option import Namespace, require_namespace
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, NotFoundError
from kube_base.access.server_clock import ServerClock
from kube_base.errors import ReportedError, UsageError
from kube_base.times import unix

EXIT_CLOSED = 3
"""Of `altershield gates`: the workload may not be released now, or without a workload: a gate is closed."""

_HEADER = ("KIND", "GATE", "EFFECT", "MODE", "STATE", "CHANGES", "REASON")


class Format(StrEnum):
    JSON = "json"
    YAML = "yaml"


def gates(
    workload: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TYPE/NAME]",
            autocompletion=types,
            help="The workload: may it be released now? Without it: the gates alone.",
            show_default=False,
        ),
    ] = None,
    namespace: Namespace = "",
    filename: Annotated[
        str,
        typer.Option("--filename", "-f", help="A file with workloads: would kubectl apply release them now? -: stdin."),
    ] = "",
    output: Annotated[
        Format | None, typer.Option("--output", "-o", help="The format: json or yaml.", show_default=False)
    ] = None,
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
        verdicts: dict[str, Verdict] = {}
        if named is not None:
            verdicts |= await asked(client, named, where, clock())
        for adapter, manifest in files:
            name = manifest["metadata"]["name"]
            place = str(manifest["metadata"].get("namespace") or where)
            verdicts[f"{adapter.resource.kind.lower()}/{name}"] = await ask_about(client, adapter, manifest, place)
        found = await read(client, (where, system_namespace), clock()) if not verdicts or output is None else None
        now = clock()
    shown = found.gates if found is not None else []
    if output is not None:
        whole = (
            {"gates": [described(each) for each in shown]}
            if not verdicts
            else {"releases": [_described(name, each) for name, each in verdicts.items()]}
        )
        sys.stdout.write(objects.to_json(whole) if output is Format.JSON else objects.to_yaml(whole))
    else:
        for name, verdict in verdicts.items():
            _lines(explained(name, verdict, now))
        _lines(table(shown))
        for each in found.unread if found is not None else ():
            print(
                f"Warning: you may not read the gates of the namespace {each}; ask for the role view", file=sys.stderr
            )
    if verdicts:
        return 0 if all(each.allowed for each in verdicts.values()) else EXIT_CLOSED
    return EXIT_CLOSED if any(each.refuses for each in shown) else 0


async def asked(client: Client, named: Selection, namespace: str, now: float) -> dict[str, Verdict]:
    """The answer about a workload. Without a type, the first kind that has one of this name."""
    missing: NotFoundError | None = None
    for adapter in named.adapters:
        try:
            verdict = await ask(client, adapter, named.name, namespace, now)
        except NotFoundError as error:
            missing = error
            continue
        except ApiError as error:
            raise ReportedError(f"cannot ask about {named.argument}: {error}") from error
        return {f"{adapter.resource.kind.lower()}/{named.name}": verdict}
    raise UsageError(f"{named.described} not found in namespace {namespace}: {missing}")


def explained(name: str, verdict: Verdict, now: float) -> list[str]:
    """The lines about one workload."""
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


def _described(name: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "workload": name,
        "allowed": verdict.allowed,
        "message": verdict.message,
        "opensAt": verdict.opens_at or None,
        "closed": [
            {"kind": each.get("reason"), "gate": each.get("field"), "message": each.get("message")}
            for each in verdict.causes
        ],
    }


def _lines(found: Sequence[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in found)
