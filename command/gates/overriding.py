"""The command line of `altershield override`."""

import asyncio
import datetime
from typing import Annotated

import typer

from altershield.api.gates.overrides import MAX_USES, TTL_SECONDS, GateName
from altershield.api.resources import RELEASE_OVERRIDES
from altershield.process import options
from altershield.views import permission
from altershield.views.current_user import user
from altershield.views.durations import seconds
from altershield.views.gates.reading import GateError
from altershield.views.selection import parse
from altershield.workloads.adapter import Adapter
from command.gates.command import named_one
from command.namespace_option import Namespace, require_namespace
from command.output import Object, PrintedObject, say, write_objects
from command.shell import candidates
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError, InvalidError, NotFoundError
from kube_base.access.server_clock import ServerClock
from kube_base.errors import UsageError

_ALL = (GateName.WINDOW, GateName.FREEZE, GateName.LIMIT, GateName.FIELD)


def override(
    workload: Annotated[
        list[str],
        typer.Argument(
            metavar="TYPE/NAME",
            autocompletion=candidates.workloads,
            help="The workload that may be released.",
            show_default=False,
        ),
    ],
    reason: Annotated[
        str, typer.Option("--reason", "-m", help="Why, in 10 to 1,024 characters.", show_default=False)
    ] = "",
    gates: Annotated[
        str,
        typer.Option("--gates", metavar="Window,Freeze,…", help="Which gates it may pass. Default: all of them."),
    ] = ",".join(_ALL),
    uses: Annotated[int, typer.Option("--uses", min=1, max=MAX_USES, help="How many versions may pass.")] = 1,
    ttl: Annotated[str, typer.Option("--ttl", help="For how long, as 30m or 1h, at most 24h.")] = f"{TTL_SECONDS}s",
    system: Annotated[
        bool, typer.Option("--all-gates", "-A", help="Pass the gates of AlterShield's namespace, too.")
    ] = False,
    namespace: Namespace = "",
    output: PrintedObject = None,
    system_namespace: options.SystemNamespace = options.SYSTEM_NAMESPACE,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Let one release of a workload pass closed gates, in an emergency. A suspension stays.

    It creates a ReleaseOverride with your user name and the reason; each use is recorded in it. It takes the
    ClusterRole altershield-breakglass: in the namespace for its own gates, or with -A in AlterShield's namespace.
    """
    require_namespace(namespace)
    named = named_one(parse(workload))
    if len(named.adapters) != 1:
        raise UsageError(f"name the type of the workload, as deploy/{named.name}")
    wanted = [each for each in gates.split(",") if each]
    if not wanted or not set(wanted) <= set(map(str, GateName)):
        raise UsageError(f'--gates "{gates}" is not a list of {", ".join(_ALL)}')
    spec = {
        "reason": reason,
        "gates": wanted,
        "uses": uses,
        "ttlSeconds": int(seconds(ttl, "--ttl")),
    }

    async def run() -> None:
        async with await Client.connect(kubeconfig, context=context) as client:
            target = namespace or client.namespace
            where = system_namespace if system else target
            made = await _create(client, named.adapters[0], named.name, target, where, spec)
        name = f"{where}/{made['metadata']['name']}"
        say(f"ReleaseOverride {name}: {uses} version(s) of {workload[0]} may pass {gates} within {ttl}", output)
        write_objects([made], output, single=True)

    asyncio.run(run())


async def _create(
    client: Client, adapter: Adapter, name: str, target: str, namespace: str, spec: dict[str, object]
) -> Object:
    """Create the override, and return it."""
    clock = ServerClock()
    client.on_date(clock.update)
    by = await user(client)
    made = f"{name[:200]}-{datetime.datetime.fromtimestamp(clock(), datetime.UTC):%Y%m%d-%H%M%S}"
    obj = {
        "apiVersion": RELEASE_OVERRIDES.api_version,
        "kind": RELEASE_OVERRIDES.kind,
        "metadata": {"name": made, "namespace": namespace},
        "spec": {
            **spec,
            "requestedBy": by,
            "target": {"kind": adapter.resource.kind, "name": name, "namespace": target},
        },
    }
    try:
        return await client.create(RELEASE_OVERRIDES, obj, namespace)
    except InvalidError as error:
        raise UsageError(f"the API server refuses the ReleaseOverride: {error}") from error
    except NotFoundError as error:
        raise GateError(f"cannot create a ReleaseOverride in namespace {namespace}: {error}") from error
    except ForbiddenError as error:
        asked = permission.role("altershield-breakglass", namespace)
        raise GateError(permission.refused(f"create a ReleaseOverride in {namespace}", error, asked)) from error
