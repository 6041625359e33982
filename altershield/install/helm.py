"""What Helm remembers of a release: Secrets with its history, which `helm list` shows, and which stay when the release
is taken away without Helm. Their layout is that of Helm's storage driver `secret`."""

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from altershield.api.meta import ObjectMeta

CHART = "altershield"
TYPE = "helm.sh/release.v1"
_MAX_SIZE = 2**25  # bytes, unpacked; a Secret holds 1 MiB


class Release(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def selector(self) -> str:
        """Of the Secrets with its history."""
        return f"owner=helm,name={self.name}"


class Record(msgspec.Struct):
    """A Secret with one revision; `data["release"]` is base64 of base64 of gzip of JSON."""

    metadata: ObjectMeta
    type: str = ""
    data: dict[str, str] | None = None


class _ChartMetadata(msgspec.Struct):
    name: str


class _Chart(msgspec.Struct):
    metadata: _ChartMetadata


class _Revision(msgspec.Struct):
    chart: _Chart


def releases(objects: Iterable[ObjectMeta]) -> list[Release]:
    """The releases to which Helm says that the objects belong, each once."""
    keys = ("meta.helm.sh/release-namespace", "meta.helm.sh/release-name")
    named = (Release(*(each.annotations.get(key, "") for key in keys)) for each in objects)
    return list(dict.fromkeys(release for release in named if all(release)))


def is_of_chart(records: Sequence[Record]) -> bool:
    """Whether all revisions are of our chart; False as well where that cannot be read. A chart that merely contains
    ours has other things in its release."""
    return all(_chart(record) == CHART for record in records)


def _chart(record: Record) -> str:
    try:
        packed = base64.b64decode(base64.b64decode((record.data or {})["release"]))
        text = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(packed, _MAX_SIZE)
        return msgspec.json.decode(text, type=_Revision).chart.metadata.name
    except (KeyError, ValueError, zlib.error, msgspec.DecodeError, RecursionError):
        return ""
