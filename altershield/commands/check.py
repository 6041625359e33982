"""`altershield check`: tests AlterShield in a cluster with a workload of its own. `helm test` runs this command."""

import asyncio
import base64
import contextlib
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from altershield.api import labels, names
from altershield.api.kinds import ChangePod, ChangeWorkload, Verdict, WorkloadState
from altershield.api.meta import rfc3339
from altershield.api.resources import CHANGE_PODS, CHANGE_WORKLOADS, PODS, SECRETS
from altershield.errors import AlterShieldError, UsageError
from altershield.install.account_policies import NOT_GOVERNED, NOT_THIS
from altershield.kube.client import Client, PatchType
from altershield.kube.errors import ForbiddenError, NotFoundError, ServerError
from altershield.process import options
from altershield.process.signals import cancel_on
from altershield.releases import history
from altershield.workloads import BY_KIND, change_workload_name
from altershield.workloads.workload import Workload

T = TypeVar("T")

NAME = "altershield-check"
_ADAPTER = BY_KIND["Deployment"]
_RESOURCE = _ADAPTER.resource
_WAIT = 120.0  # seconds for each step; the node may have to pull the image
_POLICY_WAIT = 30.0  # seconds until an admission policy is in force; API servers need less than one
_POLL = 0.2


class CheckFailedError(AlterShieldError):
    """AlterShield does not work as expected."""


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
    context: options.Context = None,
    kubeconfig: options.Kubeconfig = None,
) -> None:
    """Release a workload, fail its verification, check that its next release is denied, and delete it."""
    if ungoverned_pod and not all(ungoverned_pod.partition("/")):
        raise UsageError(f"--ungoverned-pod must be NAMESPACE/NAME, but is {ungoverned_pod}")
    try:
        fields = msgspec.json.decode(pod_spec, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise UsageError(f"--pod-spec is not a JSON object: {error}") from error
    try:
        # the kubelet adds directories to a mounted Secret
        files = sorted(file for file in pull_secrets.iterdir() if file.is_file()) if pull_secrets else []
        secrets = [_pull_secret(file) for file in files]
    except OSError as error:
        raise UsageError(f"--pull-secrets cannot be read: {error.filename}: {error.strerror}") from error
    asyncio.run(_run(kubeconfig, context, namespace, _manifest(image, fields, secrets), secrets, ungoverned_pod))


async def _run(
    kubeconfig: str | None,
    context: str | None,
    namespace: str,
    manifest: dict[str, Any],
    secrets: Sequence[dict[str, Any]],
    ungoverned_pod: str,
) -> None:
    cancel_on(signal.SIGTERM, signal.SIGHUP)
    async with await Client.connect(kubeconfig, context=context) as client:
        check = _Check(client, namespace, manifest, secrets)
        async with check.cleaning_up():
            version = await check.admitted()
            print(f"admitted: {_RESOURCE.kind} {namespace}/{NAME} got the version {version}", flush=True)
            pod = await check.verified(version)
            print(f"verified: its pod {pod} came up and passed", flush=True)
            if ungoverned_pod:
                refused = await check.restricted(ungoverned_pod)
                print(
                    f"restricted: the admission policies for AlterShield's account refused {refused} changes",
                    flush=True,
                )
            else:
                print(
                    "restricted: not tested, because --ungoverned-pod is not set; `helm test` sets this option, and "
                    "the admission policies for AlterShield's account apply to its account",
                    flush=True,
                )
            since = await check.suspended(version)
            print(f"suspended: after the verdict {Verdict.UNPASS}, since {rfc3339(int(since))}", flush=True)
            print(f"denied: {await check.denied()}", flush=True)
        await check.collected(version)
        print(f"cleaned up: the {_RESOURCE.kind} and its ChangeWorkload are deleted", flush=True)


class _Check:
    """The steps of the check, in their order."""

    def __init__(
        self, client: Client, namespace: str, manifest: dict[str, Any], secrets: Sequence[dict[str, Any]]
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._manifest = manifest
        self._secrets = secrets

    @contextlib.asynccontextmanager
    async def cleaning_up(self) -> AsyncIterator[None]:
        await self._delete()  # left by an earlier check that was interrupted
        try:
            for secret in self._secrets:
                await self._client.create(SECRETS, secret, self._namespace)
            yield
        finally:
            await self._delete()

    async def admitted(self) -> str:
        """Create the workload. Returns the version that the gatekeeper gave it."""
        path = _RESOURCE.path(self._namespace)

        async def stamped() -> str:
            try:
                answer = await self._client.request("POST", path, query={"dryRun": "All"}, body=self._manifest)
            except ServerError:
                return ""  # the gatekeeper does not answer yet
            return _ADAPTER.read(answer).version

        version = await self._until(
            stamped,
            f"the API server to call the gatekeeper for {_RESOURCE.plural} in {self._namespace}; check that a "
            "gatekeeper is ready, that the webhook configurations have its CA, and that the namespace has the label "
            f"{labels.GOVERNED}={labels.GOVERNED_VALUE}",
        )
        await self.collected(version)  # the ChangeWorkload of an earlier check
        created = _ADAPTER.read(await self._client.request("POST", path, body=self._manifest))
        if not version == created.version == created.template_version:
            raise CheckFailedError(
                f"{_RESOURCE.kind} {self._namespace}/{NAME} and its template have different versions; check that no "
                f"other webhook changes the label {labels.VERSION} or the pod template"
            )
        return version

    async def verified(self, version: str) -> str:
        """Wait until the release succeeds. Returns the name of its pod."""

        async def succeeded() -> str:
            workload = await self._workload(version)
            passed = workload.status.defense_check_pass_pods if workload else ()
            success = workload is not None and workload.status.status == WorkloadState.SUCCESS
            return passed[0].pod if success and passed else ""

        return await self._until(
            succeeded,
            "the release to succeed; check that a reconciler is the leader, and that the pod can be created, be "
            "scheduled and pull its image, and that the AlterShield server answers in time if one is configured",
        )

    async def restricted(self, ungoverned_pod: str) -> int:
        """Send one dry run for each admission policy for AlterShield's account that the policy refuses, and one dry run
        that they allow. Returns the number of refusals."""
        outside, _, pod = ungoverned_pod.partition("/")
        workload, other = _RESOURCE.path(self._namespace, NAME), PODS.path(outside, pod)
        head = {"apiVersion": history.RESOURCE.api_version, "kind": history.RESOURCE.kind}
        revision = {**head, "metadata": {"name": NAME}, "revision": 1, "data": {}}
        to_refuse: list[tuple[str, str, str, object]] = [
            (f"changing the replicas of a {_RESOURCE.kind}", "PATCH", workload, {"spec": {"replicas": 0}}),
            ("labelling a pod that is not governed", "PATCH", other, {"metadata": {"labels": {labels.VERSION: "0"}}}),
            ("deleting a pod that is not governed", "DELETE", other, None),
            (f"creating a {history.RESOURCE.kind}", "POST", history.RESOURCE.path(self._namespace), revision),
        ]
        for change, method, path, body in to_refuse:
            await self._refused(change, method, path, body)
        try:
            await self._dry_run("PATCH", workload, {"spec": {_ADAPTER.pause_field: True}})
        except ForbiddenError as error:
            raise CheckFailedError(
                f"AlterShield's account may pause a {_RESOURCE.kind}, but a dry run of the pause was refused: {error}; "
                "check which admission policy or webhook refuses it"
            ) from error
        return len(to_refuse)

    async def _refused(self, change: str, method: str, path: str, body: object) -> None:
        """Wait until an admission policy for AlterShield's account refuses the request."""
        answer = ""

        async def refused() -> bool:
            nonlocal answer
            try:
                await self._dry_run(method, path, body)
            except ForbiddenError as error:
                answer = str(error)
                return NOT_THIS in answer or NOT_GOVERNED in answer
            answer = "the API server accepted it"
            return False

        try:
            await self._until(refused, f"an admission policy to refuse {change} (dry run)", _POLICY_WAIT)
        except CheckFailedError as error:
            raise CheckFailedError(
                f"{error}; last answer: {answer}; check that the ValidatingAdmissionPolicies *-own-* and their "
                "bindings exist (`helm upgrade` creates them), that they name the user of this check, that the API "
                "server has the admission plugin ValidatingAdmissionPolicy, and that the namespace of --ungoverned-pod "
                "is not governed"
            ) from None

    async def _dry_run(self, method: str, path: str, body: object) -> None:
        content_type = PatchType.MERGE if method == "PATCH" else "application/json"
        await self._client.request(method, path, query={"dryRun": "All"}, body=body, content_type=content_type)

    async def suspended(self, version: str) -> str:
        """Give the pod a failing verdict. Returns the Unix time since which the workload is suspended."""
        name = names.change_pod_name(_release(version), 1)
        change_pod = await self._client.get(CHANGE_PODS, name, self._namespace, as_=ChangePod)
        result = {"pod": change_pod.spec.pod_infos[0].pod, "verdict": Verdict.UNPASS, "message": "altershield check"}
        await self._client.patch(
            CHANGE_PODS, {"status": {"podResults": [result]}}, name, self._namespace, subresource="status"
        )

        async def labelled() -> str:
            return (await self._stored()).suspended

        return await self._until(labelled, "the release to be suspended; check that the setting `blocking` is on")

    async def denied(self) -> str:
        """Release another template. Returns the text of the denial."""
        change = {"spec": {"template": {"metadata": {"annotations": {"altershield-check": "denied"}}}}}
        wanted = f"{_RESOURCE.kind.lower()} {NAME} is suspended"
        try:
            await self._client.patch(_RESOURCE, change, NAME, self._namespace)
        except ForbiddenError as error:
            if error.reason == wanted:
                return str(error)
            raise
        raise CheckFailedError(
            f"{wanted}, but its next release was admitted; check that the ValidatingWebhookConfiguration of "
            "AlterShield has a webhook for it"
        )

    async def collected(self, version: str) -> None:
        """Wait until the garbage collector deletes the ChangeWorkload of `version`."""

        async def gone() -> bool:
            return await self._workload(version) is None

        await self._until(
            gone,
            f"the ChangeWorkload {self._namespace}/{_release(version)} to be deleted; check that the garbage collector "
            "of the cluster runs",
        )

    async def _workload(self, version: str) -> ChangeWorkload | None:
        try:
            return await self._client.get(CHANGE_WORKLOADS, _release(version), self._namespace, as_=ChangeWorkload)
        except NotFoundError:
            return None

    async def _stored(self) -> Workload:
        return _ADAPTER.read(await self._client.request("GET", _RESOURCE.path(self._namespace, NAME)))

    async def _delete(self) -> None:
        """Delete the Secrets and the workload, and wait until the workload and its pod are deleted."""

        async def gone() -> bool:
            try:
                await self._stored()
            except NotFoundError:
                return True
            return False

        for secret in self._secrets:  # first, because the rest may take longer than the time for a cleanup
            with contextlib.suppress(NotFoundError):
                await self._client.delete(SECRETS, secret["metadata"]["name"], self._namespace)
        with contextlib.suppress(NotFoundError):
            await self._client.delete(_RESOURCE, NAME, self._namespace, propagation="Foreground")
            await self._until(gone, f"{_RESOURCE.kind} {self._namespace}/{NAME} to be deleted")

    async def _until(self, met: Callable[[], Awaitable[T]], waiting_for: str, seconds: float = _WAIT) -> T:
        """Call `met` until its result is true. Returns the result. CheckFailedError: the time is over."""
        try:
            async with asyncio.timeout(seconds):
                while True:
                    if seen := await met():
                        return seen
                    await asyncio.sleep(_POLL)
        except TimeoutError:
            raise CheckFailedError(f"waited {seconds:.0f} s for {waiting_for}") from None


def _release(version: str) -> str:
    return change_workload_name(_RESOURCE.kind, NAME, version)


def _pull_secret(file: Path) -> dict[str, Any]:
    """The Secret for a registry. Its name is specific to this command, which deletes it at the end."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{NAME}-{file.name}"},
        "type": "kubernetes.io/dockerconfigjson",
        "data": {".dockerconfigjson": base64.b64encode(file.read_bytes()).decode()},
    }


def _manifest(image: str, pod_spec: dict[str, Any], pull_secrets: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A workload with one pod that does nothing and meets the restricted Pod Security Standard."""
    return {
        "apiVersion": _RESOURCE.api_version,
        "kind": _RESOURCE.kind,
        "metadata": {"name": NAME, "labels": {"app": NAME}},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": NAME}},
            "template": {
                "metadata": {"labels": {"app": NAME}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "automountServiceAccountToken": False,
                    "imagePullSecrets": [{"name": secret["metadata"]["name"]} for secret in pull_secrets],
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": 65532,  # the default user of busybox is root
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    **pod_spec,
                    "containers": [
                        {
                            "name": NAME,
                            "image": image,
                            "imagePullPolicy": "IfNotPresent",
                            "command": ["sleep", "3600"],
                            "resources": {"requests": {"cpu": "1m", "memory": "16Mi"}, "limits": {"memory": "64Mi"}},
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                            },
                        }
                    ],
                },
            },
        },
    }
