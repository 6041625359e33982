"""Whether the admission policies for AlterShield's account are in force."""

from altershield.api import labels
from altershield.releases import history
from command.check.objects import ADAPTER, NAME, RESOURCE
from command.check.waiting import CheckFailedError, until
from command.install.account_policies import NOT_GOVERNED, NOT_THIS
from kube_base.access.client import Client, PatchType
from kube_base.access.errors import ForbiddenError
from kube_base.resources import PODS

_POLICY_WAIT = 30.0  # seconds until an admission policy is in force; API servers need less than one


async def restricted(client: Client, namespace: str, ungoverned_pod: str) -> int:
    """Send one dry run for each admission policy for AlterShield's account that the policy refuses, and one dry run
    that they allow. Returns the number of refusals."""
    outside, _, pod = ungoverned_pod.partition("/")
    workload, other = RESOURCE.path(namespace, NAME), PODS.path(outside, pod)
    head = {"apiVersion": history.RESOURCE.api_version, "kind": history.RESOURCE.kind}
    revision = {**head, "metadata": {"name": NAME}, "revision": 1, "data": {}}
    to_refuse: list[tuple[str, str, str, object]] = [
        (f"changing the replicas of a {RESOURCE.kind}", "PATCH", workload, {"spec": {"replicas": 0}}),
        ("labelling a pod that is not governed", "PATCH", other, {"metadata": {"labels": {labels.VERSION: "0"}}}),
        ("deleting a pod that is not governed", "DELETE", other, None),
        (f"creating a {history.RESOURCE.kind}", "POST", history.RESOURCE.path(namespace), revision),
    ]
    for change, method, path, body in to_refuse:
        await _refused(client, change, method, path, body)
    try:
        await _dry_run(client, "PATCH", workload, {"spec": {ADAPTER.pause_field: True}})
    except ForbiddenError as error:
        raise CheckFailedError(
            f"AlterShield's account may pause a {RESOURCE.kind}, but a dry run of the pause was refused: {error}; "
            "check which admission policy or webhook refuses it"
        ) from error
    return len(to_refuse)


async def _refused(client: Client, change: str, method: str, path: str, body: object) -> None:
    """Wait until an admission policy for AlterShield's account refuses the request."""
    answer = ""

    async def refused() -> bool:
        nonlocal answer
        try:
            await _dry_run(client, method, path, body)
        except ForbiddenError as error:
            answer = str(error)
            return NOT_THIS in answer or NOT_GOVERNED in answer
        answer = "the API server accepted it"
        return False

    try:
        await until(refused, f"an admission policy to refuse {change} (dry run)", _POLICY_WAIT)
    except CheckFailedError as error:
        raise CheckFailedError(
            f"{error}; last answer: {answer}; check that the ValidatingAdmissionPolicies *-own-* and their "
            "bindings exist (`helm upgrade` creates them), that they name the user of this check, that the API "
            "server has the admission plugin ValidatingAdmissionPolicy, and that the namespace of --ungoverned-pod "
            "is not governed"
        ) from None


async def _dry_run(client: Client, method: str, path: str, body: object) -> None:
    content_type = PatchType.MERGE if method == "PATCH" else "application/json"
    await client.request(method, path, query={"dryRun": "All"}, body=body, content_type=content_type)
