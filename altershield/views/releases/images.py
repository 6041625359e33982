"""The images of versions that are not the present one, read from the history with the rights of the user."""

from collections.abc import Iterable, Sequence

import msgspec

from altershield import releases
from altershield.images import Images, images_of
from altershield.releases import history
from altershield.views.releases.model import Release
from kube_base.access.client import Client
from kube_base.access.errors import KubernetesError

_MAX_READ = 20  # entries of the history that one table asks for


class ImagesReader:
    """Reads each entry once: the template of a version does not change."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._known: dict[tuple[str, str], Images] = {}
        self._left = _MAX_READ

    async def added(self, wanted: Sequence[Release], found: Sequence[Release]) -> list[Release]:
        """The releases `wanted`, with the images of versions that are not the present one, and of the version before
        those that have several containers. `found`: the releases of all versions. Without an entry, or the right to
        read it, an image is not known."""
        self._left = _MAX_READ
        made = []
        for each in wanted:
            older = () if each.present else await self._images(each)
            before = _before(each, found) if len(each.workload.images) > 1 else None
            known = () if before is None else await self._images(before)
            made.append(each._replace(older_images=older, images_before=known))
        return made

    async def _images(self, release: Release) -> Images:
        metadata = release.workload.metadata
        if release.stored is None:
            return ()
        version = releases.version_of(release.stored.release)
        key = metadata.namespace, history.entry_name(release.workload.group_kind, metadata.name, version)
        images = self._known.get(key, ())
        if not images and self._left:
            self._left -= 1
            images = await self._read(*key)
            if images:  # an entry may come later
                self._known[key] = images
        return images

    async def _read(self, namespace: str, name: str) -> Images:
        try:
            return images_of(
                history.read(await self._client.get(history.RESOURCE, name, namespace, as_=msgspec.Raw)).template
            )
        except (KubernetesError, msgspec.DecodeError):
            return ()


def _before(release: Release, found: Iterable[Release]) -> Release | None:
    """The release of the same workload before this one."""
    before = None
    for each in found:
        if each.key == release.key:
            if each.version == release.version:
                return before
            before = each
    return None
