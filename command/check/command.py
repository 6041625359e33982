"""The command line of `altershield check`."""

import asyncio
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from altershield.api.pod_verdicts import Verdict
from altershield.process import options
from altershield.process.signals import cancel_on
from altershield.views import permission
from command.check.governed import require_governed
from command.check.objects import NAME, RESOURCE, manifest, pull_secret
from command.check.restrictions import restricted
from command.check.result import Told
from command.check.steps import Steps
from command.check.waiting import CheckFailedError
from command.namespace_option import require_namespace
from command.output import Format, Printed
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError
from kube_base.errors import UsageError
from kube_base.times import rfc3339


def check(
    namespace: Annotated[
        str,
        typer.Option("--namespace", "-n", envvar="ALTERSHIELD_NAMESPACE", help="A governed namespace for the test."),
    ],
    image: Annotated[
        str, typer.Option("--image", envvar="ALTERSHIELD_IMAGE", help="An image with the program `sleep`, for one pod.")
    ] = "busybox",
    pod_spec: Annotated[
        str,
        typer.Option(
            "--pod-spec",
            envvar="ALTERSHIELD_POD_SPEC",
            help="Fields for the spec of the pod, as JSON. They replace default fields such as securityContext.",
        ),
    ] = "{}",
    pull_secrets: Annotated[
        Path | None,
        typer.Option(
            "--pull-secrets",
            envvar="ALTERSHIELD_PULL_SECRETS",
            help="A directory with one file for each registry, of any name, in the format .dockerconfigjson. The pod "
            "gets each file as a pull secret.",
        ),
    ] = None,
    ungoverned_pod: Annotated[
        str,
        typer.Option(
            "--ungoverned-pod",
            envvar="ALTERSHIELD_UNGOVERNED_POD",
            help="NAMESPACE/NAME of a pod in a namespace that is not governed. With this option, the check also tests "
            "the admission policies for AlterShield's account, with dry runs. The policies must apply to the user of "
            "the check. They apply to the account of `helm test`.",
        ),
    ] = "",
    output: Printed = None,
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Release a workload, fail its verification, check that its next release is denied, and delete it.

    The namespace must be governed. The command needs the ClusterRoles edit and altershield-verdicts in it.
    """
    require_namespace(namespace)
    if ungoverned_pod and not all(ungoverned_pod.partition("/")):
        raise UsageError(f"--ungoverned-pod must be NAMESPACE/NAME, but is {ungoverned_pod}")
    try:
        fields = msgspec.json.decode(pod_spec, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(f"--pod-spec is not a JSON object: {error}") from error
    try:
        # the kubelet adds directories to a mounted Secret
        files = sorted(file for file in pull_secrets.iterdir() if file.is_file()) if pull_secrets else []
        secrets = [pull_secret(file) for file in files]
    except OSError as error:
        raise UsageError(f"--pull-secrets cannot be read: {error.filename}: {error.strerror}") from error
    made = manifest(image, fields, secrets)
    asyncio.run(_run(kubeconfig, context, namespace, made, secrets, ungoverned_pod, output))


async def _run(
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    manifest: dict[str, Any],
    secrets: Sequence[dict[str, Any]],
    ungoverned_pod: str,
    output: Format | None,
) -> None:
    cancel_on(signal.SIGTERM, signal.SIGHUP)
    async with await Client.connect(kubeconfig, context=context) as client:
        await carry_out(client, Steps(client, namespace, manifest, secrets), namespace, ungoverned_pod, output)


async def carry_out(
    client: Client, steps: Steps, namespace: str, ungoverned_pod: str = "", output: Format | None = None
) -> None:
    """Carry out the check, and print the result of each step. UsageError: the namespace is not governed.
    CheckFailedError: AlterShield does not work, or this user lacks a permission."""
    await require_governed(client, namespace)
    told = Told(output)
    try:
        await _carry_out(client, steps, namespace, ungoverned_pod, told)
    except ForbiddenError as error:
        roles = f"the ClusterRoles edit and altershield-verdicts {permission.place(namespace)}"
        attempt = f"carry out the check {permission.place(namespace)}"
        failed = CheckFailedError(permission.refused(attempt, error, roles))
        told.end(str(failed))
        raise failed from error
    except CheckFailedError as failed:
        told.end(str(failed))
        raise
    told.end("")


async def _carry_out(client: Client, steps: Steps, namespace: str, ungoverned_pod: str, told: Told) -> None:
    async with steps.cleaning_up():
        version = await steps.admitted()
        told.step("admitted", f"{RESOURCE.kind} {namespace}/{NAME} got the version {version}")
        pod = await steps.verified(version)
        told.step("verified", f"its pod {pod} came up and passed")
        if ungoverned_pod:
            refused = await restricted(client, namespace, ungoverned_pod)
            told.step("restricted", f"the admission policies for AlterShield's account refused {refused} changes")
        else:
            told.step(
                "restricted",
                "not tested, because --ungoverned-pod is not set; `helm test` sets this option, and the admission "
                "policies for AlterShield's account apply to its account",
                tested=False,
            )
        since = await steps.suspended(version)
        told.step("suspended", f"after the verdict {Verdict.UNPASS}, since {rfc3339(int(since))}")
        told.step("denied", await steps.denied())
    await steps.collected(version)
    told.step("cleaned up", f"the {RESOURCE.kind} and its ChangeWorkload are deleted")
