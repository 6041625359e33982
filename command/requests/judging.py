"""Writes a person's verdict on a pod into its ChangePod."""

import msgspec

from altershield.api.change_pod import ChangePod
from altershield.api.pod_verdicts import Verdict
from altershield.api.resources import CHANGE_PODS
from altershield.views import finding, permission
from altershield.views.asking import RequestError
from altershield.views.current_user import user
from kube_base.access.client import Client
from kube_base.access.errors import ConflictError, ForbiddenError

_ATTEMPTS = 5
_MAX_MESSAGE = 1024


async def judge(client: Client, namespace: str, pod: str, verdict: Verdict, message: str) -> ChangePod:
    """Store the verdict and return the ChangePod. The verdicts on other pods of the batch stay. RequestError: the pod
    is in no ChangePod, or the API server refuses the verdict."""
    by = await user(client)
    for _ in range(_ATTEMPTS):
        batch = await finding.batch_of(client, namespace, pod)
        info = next(each for each in batch.spec.pod_infos if each.pod == pod)
        result = msgspec.structs.replace(info, verdict=verdict.value, message=message[:_MAX_MESSAGE], by=by)
        results = [*(each for each in batch.status.pod_results if each.pod != pod), result]
        metadata = batch.metadata
        patch = {
            "metadata": {"resourceVersion": metadata.resource_version},
            "status": {"podResults": msgspec.to_builtins(results)},
        }
        try:
            return await client.patch(
                CHANGE_PODS, patch, metadata.name, metadata.namespace, subresource="status", as_=ChangePod
            )
        except ConflictError:
            continue
        except ForbiddenError as error:
            attempt = f"write the verdict into ChangePod {metadata.name} {permission.place(namespace)}"
            role = permission.role("altershield-verdicts", namespace)
            raise RequestError(permission.refused(attempt, error, role)) from error
    raise RequestError(f"the ChangePod of pod {pod} changes all the time; try again")
