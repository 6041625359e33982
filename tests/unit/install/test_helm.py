"""Whose a Helm release is, told from what Helm stored of it."""

import base64
import gzip
import json

import pytest

from altershield.api.meta import ObjectMeta
from altershield.install.helm import Record, Release, is_of_chart, releases


def record(release: object) -> Record:
    packed = gzip.compress(release if isinstance(release, bytes) else json.dumps(release).encode())
    return stored(base64.b64encode(packed))


def stored(content: bytes) -> Record:
    return Record(ObjectMeta(), "helm.sh/release.v1", {"release": base64.b64encode(content).decode()})


OURS = {"name": "gate", "chart": {"metadata": {"name": "altershield", "version": "0.1.0"}}, "manifest": "---"}


def test_a_release_of_the_chart_is_ours() -> None:
    assert is_of_chart([record(OURS), record(OURS)])


@pytest.mark.parametrize(
    "other",
    [
        record({"chart": {"metadata": {"name": "platform"}, "dependencies": ["altershield"]}}),
        record({"chart": None}),
        record(b"[" * 100_000),
        record(b'{"chart": {"metadata": {"name": "altershield"}}, "manifest": "' + b"x" * 2**26 + b'"}'),
        stored(b"no base64"),
        stored(base64.b64encode(b"not packed")),
        Record(ObjectMeta(), "helm.sh/release.v1", {"release": "?"}),
        Record(ObjectMeta(), "helm.sh/release.v1"),
    ],
    ids=["umbrella", "shapeless", "deep", "bomb", "no base64", "not packed", "garbage", "empty"],
)
def test_one_that_holds_more_or_cannot_be_read_is_not(other: Record) -> None:
    assert not is_of_chart([record(OURS), other])


def test_objects_name_their_release_once() -> None:
    annotations = {"meta.helm.sh/release-name": "gate", "meta.helm.sh/release-namespace": "system"}
    objects = [
        ObjectMeta(annotations=annotations),
        ObjectMeta(annotations=annotations),
        ObjectMeta(annotations={"meta.helm.sh/release-name": "nowhere"}),
        ObjectMeta(),
    ]
    assert releases(objects) == [Release("system", "gate")]
