"""A Namespace with the protection `Cascading` is not deleted while applications run in it or keep data in it."""

from gatekeeper.handler import handler
from gatekeeper.handlers.deletions.protected import WEBHOOK_SECONDS, Protected, decided
from gatekeeper.handlers.deletions.reasons import OUTCOMES
from gatekeeper.listers import Listers
from gatekeeper.live import Found, Live, stays
from gatekeeper.request import Request
from gatekeeper.response import NOTHING, Response
from kube_base.resources import PERSISTENT_VOLUME_CLAIMS, PODS

_NOT_FINISHED = "status.phase!=Succeeded,status.phase!=Failed"
_BOUND = "Bound"


@handler(reads=Protected, outcomes=OUTCOMES, seconds=WEBHOOK_SECONDS)
async def deny_with_content(request: Request[Protected], listers: Listers) -> Response:
    """It does I/O because the gatekeeper has no cache of all pods and claims, and because a cache may not have a pod
    that was created just now."""
    found = request.object
    if not found.needs_reading:
        return NOTHING
    name = found.metadata.name

    async def content() -> str:
        return await _content(listers.live, name)

    return await decided(request, found, content, "delete its pods and claims first")


async def _content(live: Live, namespace: str) -> str:
    """Pods before claims, as OpenKruise reports them."""
    pods = await live.count(PODS, namespace, stays, field_selector=_NOT_FINISHED, metadata_only=True)
    if pods:
        return f"active pods {pods}>0"
    claims = await live.count(PERSISTENT_VOLUME_CLAIMS, namespace, _is_bound)
    return f'"Bound" status pvc {claims}>0' if claims else ""


def _is_bound(claim: Found) -> bool:
    return claim.status.phase == _BOUND and stays(claim)
