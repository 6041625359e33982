"""Helm releases: the Secrets in which Helm's storage driver `secret` keeps their history. `helm list` shows releases
with such Secrets. The Secrets stay if the objects of the release are deleted without Helm."""

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from kube_base.meta import ObjectMeta

CHART = "altershield"
TYPE = "helm.sh/release.v1"
_MAX_SIZE = 2**25  # bytes after decompression; a Secret has at most 1 MiB


class Release(NamedTuple):
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def selector(self) -> str:
        """The label selector of the Secrets with its history."""
        return f"owner=helm,name={self.name}"


class RevisionSecret(msgspec.Struct):
    """A Secret with one revision. `data["release"]` is JSON: compressed with gzip and encoded with base64 twice."""

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
    """The Helm releases that the annotations of the objects name, each once."""
    keys = ("meta.helm.sh/release-namespace", "meta.helm.sh/release-name")
    named = (Release(*(each.annotations.get(key, "") for key in keys)) for each in objects)
    return list(dict.fromkeys(release for release in named if all(release)))


def is_of_chart(secrets: Sequence[RevisionSecret]) -> bool:
    """Whether all revisions are of the chart `altershield`. False if a Secret cannot be read. The release of a chart
    with `altershield` as a dependency has other objects too."""
    return all(_chart(secret) == CHART for secret in secrets)


def _chart(secret: RevisionSecret) -> str:
    try:
        packed = base64.b64decode(base64.b64decode((secret.data or {})["release"]))
        text = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16).decompress(packed, _MAX_SIZE)
        return msgspec.json.decode(text, type=_Revision).chart.metadata.name
    except (KeyError, ValueError, zlib.error, msgspec.DecodeError, RecursionError):
        return ""
