"""A CustomResourceDefinition with the protection `Cascading` is not deleted while there are objects of its kind."""

import msgspec

from gatekeeper.errors import ReviewError
from gatekeeper.handler import handler
from gatekeeper.handlers.deletions.protected import WEBHOOK_SECONDS, Protected, decided
from gatekeeper.handlers.deletions.reasons import OUTCOMES
from gatekeeper.listers import Listers
from gatekeeper.live import stays
from gatekeeper.request import Request
from gatekeeper.response import NOTHING, Response
from kube_base.resources import Resource


class _Version(msgspec.Struct, frozen=True):
    name: str
    served: bool = False


class _Names(msgspec.Struct, frozen=True):
    plural: str = ""
    kind: str = ""


class _Spec(msgspec.Struct, frozen=True):
    group: str = ""
    names: _Names = _Names()
    versions: tuple[_Version, ...] = ()


class Definition(Protected, frozen=True, rename="camel"):
    """The fields of a CustomResourceDefinition that say how its objects are listed."""

    spec: _Spec = _Spec()

    def resource(self) -> Resource:
        """ReviewError: the API server serves no version."""
        spec = self.spec
        served = next((version.name for version in spec.versions if version.served), None)
        if served is None:
            raise ReviewError("the API server serves no version of its kind")
        return Resource(spec.group, served, spec.names.plural, spec.names.kind)


@handler(reads=Definition, outcomes=OUTCOMES, seconds=WEBHOOK_SECONDS)
async def deny_with_objects(request: Request[Definition], listers: Listers) -> Response:
    """It does I/O because the gatekeeper has no caches of custom resources of others."""
    found = request.object
    if not found.needs_reading:
        return NOTHING

    async def content() -> str:
        objects = await listers.live.count(found.resource(), "", stays, metadata_only=True)
        return f"active CRs {objects}>0" if objects else ""

    return await decided(request, found, content, "delete its objects first")
