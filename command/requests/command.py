"""The command lines of the requests."""

import asyncio
import contextlib
import sys
import time
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import msgspec
import typer

from altershield.api.pod_verdicts import Verdict
from altershield.api.workload_requests import Request, Result, Verb
from altershield.process import options
from altershield.views import finding
from altershield.views.asking import RequestError, ask, asked_for
from altershield.views.current_user import user
from altershield.views.durations import seconds
from altershield.views.names import workload_name
from altershield.views.releases import objects
from altershield.views.releases.model import StoredRelease
from altershield.views.selection import parse
from altershield.workloads import named_kind
from command.namespace_option import Namespace, require_namespace
from command.output import ObjectFormat, PrintedObject, say, write_objects
from command.requests.judging import judge
from command.shell import candidates
from command.status.following import outcome_code
from kube_base.access.client import Client
from kube_base.errors import UsageError
from kube_base.times import rfc3339

_MAX_REASON = 512  # of the field in the CRD


class Word(StrEnum):
    """A verdict."""

    PASS = "pass"  # noqa: S105  (a verdict, not a password)
    FAIL = "fail"


Workload = Annotated[
    list[str],
    typer.Argument(
        metavar="TYPE/NAME|TYPE NAME",
        autocompletion=candidates.workloads,
        help="The workload: deploy/web, deploy web, or web.",
        show_default=False,
    ),
]
Reason = Annotated[
    str, typer.Option("--message", "-m", help="The reason, for other people. It is stored.", show_default=False)
]
Wait = Annotated[bool, typer.Option("--wait", help="Then wait until the release is not under way any more.")]
Timeout = Annotated[str, typer.Option("--timeout", help="The timeout of --wait, as 90s, 5m or 1h30m. 0: no timeout.")]


def _command(verb: Verb, text: str) -> Callable[..., None]:
    """The command that makes this request, which needs no more than a reason. `text`: its help."""

    def command(
        workload: Workload,
        message: Reason = "",
        namespace: Namespace = "",
        wait: Wait = False,
        timeout: Timeout = "0",
        output: PrintedObject = None,
        context: options.Context = None,
        kubeconfig: options.Kubeconfig = None,
    ) -> None:
        _run(verb, workload, message, namespace, wait, timeout, output, context, kubeconfig)

    command.__name__, command.__doc__ = verb.lower(), text
    return command


approve = _command(
    Verb.APPROVE,
    """Accept a release that failed by a false alarm.

    Its failed pods count as passed, the suspension ends at once, and the release goes on. If another pod fails later,
    the release is suspended again.
    """,
)

resume = _command(
    Verb.RESUME,
    """Admit further releases of a suspended workload. The verdict on the present release stays.

    If another pod of the present release fails, releases are suspended again.
    """,
)

repair = _command(
    Verb.REPAIR,
    "Let the next release of a suspended workload pass, once. The suspension ends when that release succeeds.",
)

retry = _command(
    Verb.RETRY,
    """Verify the failed pods of a release again.

    Pods that wait for a person, because a check has no result, are verified again too. A release that the AlterShield
    server refused is reported again. A rollback that the API server refuses is tried again.
    """,
)


hold = _command(
    Verb.HOLD,
    """Hold a release in steps: no further step begins until somebody promotes it.

    The pods that have the version keep it, and are verified. A soak goes on, and the release waits at its end.
    """,
)


def promote(
    workload: Workload,
    full: Annotated[
        bool, typer.Option("--full", help="Later steps have no soak and no approval either. Each is still verified.")
    ] = False,
    message: Reason = "",
    namespace: Namespace = "",
    wait: Wait = False,
    timeout: Timeout = "0",
    output: PrintedObject = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Let a release in steps take its next step now, without the rest of its soak and without further approval.

    A step whose pods are not verified yet cannot be promoted: the command says what is missing. It also ends the hold
    of a person. A step of which the policy says `approval` needs the permission `approve` on `changeworkloads`.
    """
    verb = Verb.PROMOTE_FULL if full else Verb.PROMOTE
    _run(verb, workload, message, namespace, wait, timeout, output, context, kubeconfig)


def rollback(
    workload: Workload,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            autocompletion=candidates.versions,
            help="The version, the number of a release in the history, or the object that holds the template. Default: "
            "the last version that passed.",
            show_default=False,
        ),
    ] = "",
    message: Reason = "",
    namespace: Namespace = "",
    wait: Wait = False,
    timeout: Timeout = "0",
    output: PrintedObject = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Release an older version of a workload again."""
    _run(Verb.ROLLBACK, workload, message, namespace, wait, timeout, output, context, kubeconfig, to=to)


def verdict(
    pod: Annotated[str, typer.Argument(metavar="POD", help="The name of the pod.", show_default=False)],
    word: Annotated[Word, typer.Argument(metavar="pass|fail", help="The verdict.", show_default=False)],
    message: Reason = "",
    namespace: Namespace = "",
    output: PrintedObject = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Give a verdict on a pod. It replaces every other verdict on the pod."""
    _check(namespace, message)
    result = Verdict.PASS if word is Word.PASS else Verdict.UNPASS
    name = pod.removeprefix("pod/").removeprefix("pods/")

    async def run() -> None:
        async with await Client.connect(kubeconfig, context=context) as client:
            batch = await judge(client, namespace or client.namespace, name, result, message)
            say(f"pod/{name}: {result} (changepod/{batch.metadata.name})", output)
            write_objects([msgspec.to_builtins(batch)], output, single=True)

    asyncio.run(run())


def _run(
    verb: Verb,
    workload: list[str],
    message: str,
    namespace: str,
    wait: bool,
    timeout: str,
    output: ObjectFormat | None,
    context: str | None,
    kubeconfig: str | None,
    *,
    to: str = "",
) -> None:
    _check(namespace, message)
    limit = seconds(timeout, "--timeout")
    if limit and not wait:
        raise UsageError("--timeout is the timeout of --wait; add --wait, or remove --timeout")
    selection = finding.only(parse(workload))

    async def run() -> int:
        async with await Client.connect(kubeconfig, context=context) as client:
            where = namespace or client.namespace
            found = await finding.current(client, where, selection)
            request = Request(verb, await user(client), message, rfc3339(time.time()), to)
            answer = await ask(client, found, request)
            if answer.action.result == Result.REFUSED:
                raise RequestError(f"{_name(found)}: {answer.action.outcome}")
            say(f"{_name(answer.release)}: {answer.action.outcome}", output)
            write_objects(objects.objects([answer.release]), output, single=True)
            if not wait:
                return 0
            # with -o, stdout has only the object
            with contextlib.redirect_stdout(sys.stderr) if output else contextlib.nullcontext():
                return await outcome_code(
                    client, where, found.release.spec.workload_ref, limit or None, asked_for(answer)
                )

    raise typer.Exit(asyncio.run(run()))


def _name(release: StoredRelease) -> str:
    ref = release.release.spec.workload_ref
    return workload_name(named_kind(ref), ref.name)


def _check(namespace: str, message: str) -> None:
    require_namespace(namespace)
    if len(message) > _MAX_REASON:
        raise UsageError(f"the reason has {len(message)} characters; at most {_MAX_REASON} are stored")
