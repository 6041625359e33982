"""The chart of a Helm release, from the Secrets with its history."""

import base64
import gzip
import json

import pytest

from command.install.helm import Release, RevisionSecret, is_of_chart, releases
from kube_base.meta import ObjectMeta


def secret(release: object) -> RevisionSecret:
    packed = gzip.compress(release if isinstance(release, bytes) else json.dumps(release).encode())
    return stored(base64.b64encode(packed))


def stored(content: bytes) -> RevisionSecret:
    return RevisionSecret(ObjectMeta(), "helm.sh/release.v1", {"release": base64.b64encode(content).decode()})


OURS = {"name": "shield", "chart": {"metadata": {"name": "altershield", "version": "0.1.0"}}, "manifest": "---"}


def test_history_of_the_chart_is_recognized() -> None:
    assert is_of_chart([secret(OURS), secret(OURS)])


@pytest.mark.parametrize(
    "other",
    [
        secret({"chart": {"metadata": {"name": "platform"}, "dependencies": ["altershield"]}}),
        secret({"chart": None}),
        secret(b"[" * 100_000),
        stored(b"no base64"),
        stored(base64.b64encode(b"not packed")),
        RevisionSecret(ObjectMeta(), "helm.sh/release.v1", {"release": "?"}),
        RevisionSecret(ObjectMeta(), "helm.sh/release.v1"),
    ],
    ids=["umbrella", "shapeless", "deep", "no base64", "not packed", "garbage", "empty"],
)
def test_history_of_another_chart_or_unreadable_history_is_not_recognized(other: RevisionSecret) -> None:
    assert not is_of_chart([secret(OURS), other])


def test_history_that_is_too_large_is_not_recognized() -> None:
    bomb = secret(b'{"chart": {"metadata": {"name": "altershield"}}, "manifest": "' + b"x" * 2**26 + b'"}')
    assert not is_of_chart([secret(OURS), bomb])


def test_releases_are_read_from_the_annotations_of_objects_each_once() -> None:
    annotations = {"meta.helm.sh/release-name": "shield", "meta.helm.sh/release-namespace": "system"}
    objects = [
        ObjectMeta(annotations=annotations),
        ObjectMeta(annotations=annotations),
        ObjectMeta(annotations={"meta.helm.sh/release-name": "nowhere"}),
        ObjectMeta(),
    ]
    assert releases(objects) == [Release("system", "shield")]
