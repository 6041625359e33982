"""What shell completion proposes: namespaces, workloads and versions of the cluster.

A person waits for it with every Tab. So it asks for a bounded number of objects, for a bounded time, and proposes
nothing rather than an error: the words that the shell reads must not have one in between."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence

import msgspec
import typer

from altershield.api.change_workload import WorkloadRef
from altershield.api.resources import CHANGE_WORKLOADS
from altershield.releases import history
from altershield.views.finding import only
from altershield.views.names import short_version
from altershield.views.selection import is_type, parse, types
from altershield.workloads import ADAPTERS
from kube_base.access.client import Client
from kube_base.meta import ObjectMeta
from kube_base.resources import NAMESPACES

LIMIT = 2.0
"""Seconds after which nothing is proposed."""

_MORE = 1.0  # seconds later, the process ends, although a thread of it may still hang
_MAX_OBJECTS = 500

Ask = Callable[[Client, str], Awaitable[Sequence[str]]]
"""Asks the cluster for words. The arguments: the client, and the namespace of the command."""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    workload_ref: WorkloadRef = WorkloadRef()


class _Object(msgspec.Struct, frozen=True):
    metadata: ObjectMeta
    spec: _Spec = _Spec()


def namespaces(ctx: typer.Context, incomplete: str) -> list[str]:
    async def ask(client: Client, _: str) -> list[str]:
        listed = await client.list(NAMESPACES, as_=_Object, limit=_MAX_OBJECTS)
        return [each.metadata.name for each in listed.items]

    return _asked(ctx, incomplete, ask)


def workloads(ctx: typer.Context, incomplete: str) -> list[str]:
    """Types, and workloads that have a release: after a type its names, after `deploy/` the names with it, else names
    that need no type."""
    before = _words(ctx)
    typed, slash, _ = incomplete.rpartition("/")
    kind = typed if slash else before[0] if before and is_type(before[0]) else ""
    if slash and not is_type(kind):
        return []

    async def ask(client: Client, namespace: str) -> list[str]:
        listed = await client.list(CHANGE_WORKLOADS, namespace, as_=_Object, limit=_MAX_OBJECTS)
        refs = [each.spec.workload_ref for each in listed.items]
        return [f"{typed}{slash}{each.name}" for each in refs if each.name and (not kind or _is(each.kind, kind))]

    return [*(() if kind else types(incomplete)), *_asked(ctx, incomplete, ask)]


def versions(ctx: typer.Context, incomplete: str) -> list[str]:
    """The versions in the history of the workload that is named."""

    async def ask(client: Client, namespace: str) -> list[str]:
        named = only(parse(_words(ctx)))
        selector = history.label_selector(named.name)
        listed = await client.list(
            history.RESOURCE, namespace, as_=msgspec.Raw, label_selector=selector, limit=_MAX_OBJECTS
        )
        found = sorted(map(history.read, listed.items), key=lambda each: each.age_key, reverse=True)
        return [short_version(each.version) for each in found]

    return _asked(ctx, incomplete, ask)


def _words(ctx: typer.Context) -> list[str]:
    """The words before the one to complete that are no options. They are not read yet if the value of an option is
    completed."""
    found = ctx.params.get("workload") or ctx.params.get("target") or ctx.args
    return [found] if isinstance(found, str) else list(found)


def _is(kind: str, typed: str) -> bool:
    """Whether kubectl understands `typed` as this kind."""
    return any(each.resource.kind == kind and each.resource.is_called(typed, each.short_names) for each in ADAPTERS)


def _asked(ctx: typer.Context, incomplete: str, ask: Ask) -> list[str]:
    """The words of the cluster that begin with `incomplete`, each once; none if it does not answer in time."""

    async def connected() -> Sequence[str]:
        async with await Client.connect(ctx.params.get("kubeconfig"), context=ctx.params.get("context")) as client:
            return await ask(client, ctx.params.get("namespace") or client.namespace)

    async def bounded() -> Sequence[str]:
        async with asyncio.timeout(LIMIT):
            return await connected()

    try:
        with _silent(), _ended_at(LIMIT + _MORE):
            found = asyncio.run(bounded())
    except Exception:  # whatever it is: there is nobody to tell
        return []
    return list(dict.fromkeys(each for each in found if each.startswith(incomplete)))


@contextlib.contextmanager
def _ended_at(seconds: float) -> Iterator[None]:
    """End the process after this time. A program that a kubeconfig runs, or a name server, may not answer, and asyncio
    waits for the thread that asked."""
    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, lambda *_: os._exit(0))
    timer = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *timer)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Nothing reaches stderr, also not from a program that a kubeconfig runs."""
    before = os.dup(2)
    logging.disable(logging.CRITICAL)
    try:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
        logging.disable(logging.NOTSET)
