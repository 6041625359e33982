"""The command lines of `altershield freeze` and `altershield unfreeze`."""

import asyncio
import datetime
import re
from typing import Annotated, Any

import msgspec
import typer

from altershield.api.gates.freezes import ReleaseFreeze
from altershield.api.gates.rules import MAX_GATE_REASON, GateMode
from altershield.api.names import is_name
from altershield.api.resources import RELEASE_FREEZES
from altershield.process import options
from altershield.views import permission
from altershield.views.current_user import user
from altershield.views.durations import seconds
from altershield.views.gates.reading import GateError
from command.namespace_option import Namespace, require_namespace
from command.output import Object, ObjectFormat, PrintedObject, say, write_objects
from kube_base.access.client import Client
from kube_base.access.errors import AlreadyExistsError, ForbiddenError, NotFoundError
from kube_base.access.server_clock import ServerClock
from kube_base.errors import UsageError
from kube_base.times import rfc3339, unix

_MANAGERS = "altershield-release-manager"

Name = Annotated[str, typer.Argument(metavar="[NAME]", help="The name of the freeze.", show_default=False)]


def freeze(
    name: Name = "",
    reason: Annotated[
        str,
        typer.Option("--reason", "-m", help="Why no release may begin. Denied releases quote it.", show_default=False),
    ] = "",
    until: Annotated[
        str,
        typer.Option(
            "--until",
            metavar="TIME|DURATION",
            help="When it ends: 2026-12-27T08:00:00+01:00, or 2h from now. Default: when a person ends it.",
            show_default=False,
        ),
    ] = "",
    begins: Annotated[
        str,
        typer.Option("--from", metavar="TIME|DURATION", help="When it begins. Default: now.", show_default=False),
    ] = "",
    selector: Annotated[
        str,
        typer.Option(
            "--selector", "-l", metavar="KEY=VALUE,…", help="Only workloads with these labels.", show_default=False
        ),
    ] = "",
    warn: Annotated[bool, typer.Option("--warn", help="Releases pass with a warning.")] = False,
    everywhere: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Freeze all governed namespaces.")] = False,
    namespace: Namespace = "",
    output: PrintedObject = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Let no release begin in a namespace, or in all of them, until a person or a time ends the freeze.

    It creates a ReleaseFreeze with your user name. Going back to the version before stays possible. It takes the
    ClusterRole altershield-release-manager: in the namespace, or with -A in AlterShield's namespace.
    """
    require_namespace(namespace)
    if everywhere and namespace:
        raise UsageError("-A cannot be combined with -n")
    if not reason or len(reason) > MAX_GATE_REASON:
        raise UsageError(f"say why with --reason, in at most {MAX_GATE_REASON} characters: denied releases quote it")
    if name and not is_name(name):
        raise UsageError(f'no ReleaseFreeze can have the name "{name}"')
    labels = _labels(selector)

    wanted: dict[str, Any] = {"reason": reason, "from": begins, "until": until}
    wanted |= {"selector": {"matchLabels": labels}} if labels else {}
    wanted |= {"mode": GateMode.WARN.value} if warn else {}

    async def run() -> None:
        async with await Client.connect(kubeconfig, context=context) as client:
            where = system_namespace if everywhere else namespace or client.namespace
            await _freeze(client, name, where, wanted, output, everywhere=everywhere)

    asyncio.run(run())


async def _freeze(
    client: Client,
    name: str,
    namespace: str,
    wanted: dict[str, Any],
    output: ObjectFormat | None,
    *,
    everywhere: bool,
) -> None:
    """Create the freeze, and say what it does. The times are those of the options."""
    clock = ServerClock()
    client.on_date(clock.update)
    by = await user(client)  # reads the time of the API server, too
    now = clock()
    times = {key: _time(wanted[key], now, f"--{key}") for key in ("from", "until") if wanted[key]}
    spec = {**{key: value for key, value in wanted.items() if value}, **times, "requestedBy": by}
    made = name or f"freeze-{datetime.datetime.fromtimestamp(now, datetime.UTC):%Y%m%d-%H%M%S}"
    obj = await _create(client, made, namespace, spec)
    start = f"from {times['from']} on, " if "from" in times else ""
    effect = "releases get a warning" if "mode" in spec else "no release may begin"
    scope = "all governed namespaces" if everywhere else f"the namespace {namespace}"
    end = times.get("until") or f"a person ends it: altershield unfreeze {made} -n {namespace}"
    say(f"ReleaseFreeze {namespace}/{made}: {start}{effect} in {scope} until {end}", output)
    write_objects([obj], output, single=True)


def unfreeze(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The ReleaseFreeze.", show_default=False)],
    namespace: Namespace = "",
    everywhere: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="It is a freeze of all governed namespaces.")
    ] = False,
    output: PrintedObject = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """End a freeze now. The ReleaseFreeze stays, with your user name, as a record."""
    require_namespace(namespace)
    if not is_name(name):
        raise UsageError(f'no ReleaseFreeze can have the name "{name}"')

    async def run() -> None:
        clock = ServerClock()
        async with await Client.connect(kubeconfig, context=context) as client:
            client.on_date(clock.update)
            where = system_namespace if everywhere else namespace or client.namespace
            by = await user(client)
            try:
                obj: Object = await client.get(RELEASE_FREEZES, name, where)
                found = msgspec.convert(obj, ReleaseFreeze)
                now = clock()
                if found.spec.until and unix(found.spec.until) <= now:
                    say(f"ReleaseFreeze {where}/{name} ended at {found.spec.until}", output)
                    write_objects([obj], output, single=True)
                    return
                end = max(int(now), int(unix(found.spec.from_)))  # a freeze that has not begun never begins
                change = {
                    "metadata": {"resourceVersion": found.metadata.resource_version},
                    "spec": {"until": rfc3339(end), "endedBy": by},
                }
                obj = await client.patch(RELEASE_FREEZES, change, name, where)
            except NotFoundError as error:
                raise GateError(f"there is no ReleaseFreeze {name} in namespace {where}: {error}") from error
            except ForbiddenError as error:
                asked = permission.role(_MANAGERS, where)
                raise GateError(permission.refused(f"end ReleaseFreeze {where}/{name}", error, asked)) from error
        say(f"ReleaseFreeze {where}/{name} is ended: releases may begin, as far as no other gate is closed", output)
        write_objects([obj], output, single=True)

    asyncio.run(run())


async def _create(client: Client, name: str, namespace: str, spec: dict[str, Any]) -> Object:
    obj = {
        "apiVersion": RELEASE_FREEZES.api_version,
        "kind": RELEASE_FREEZES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }
    try:
        made: Object = await client.create(RELEASE_FREEZES, obj, namespace)
    except AlreadyExistsError:
        raise GateError(f"a ReleaseFreeze {name} exists in namespace {namespace}; choose another name") from None
    except NotFoundError as error:
        raise GateError(f"cannot create ReleaseFreeze {name} in namespace {namespace}: {error}") from error
    except ForbiddenError as error:
        asked = permission.role(_MANAGERS, namespace)
        raise GateError(permission.refused(f"create ReleaseFreeze {namespace}/{name}", error, asked)) from error
    return made


def _labels(selector: str) -> dict[str, str]:
    parts = [each for each in selector.split(",") if each]
    if not all(re.fullmatch(r"[^=!]+=[^=]*", each) for each in parts):
        raise UsageError(f'--selector "{selector}" is not KEY=VALUE,…; for other selectors, apply a ReleaseFreeze')
    return dict(each.split("=", 1) for each in parts)


def _time(text: str, now: float, option: str) -> str:
    """A time, or a duration from now on, in the format of Kubernetes."""
    at = unix(text) if re.match(r"\d{4}-", text) else now + seconds(text, option)
    if not at or (re.match(r"\d{4}-", text) and not re.search(r"(Z|[+-]\d\d:?\d\d)$", text)):
        raise UsageError(
            f'{option} "{text}" is no time with an offset, as 2026-12-27T08:00:00Z, and no duration, as 2h'
        )
    return rfc3339(at)
