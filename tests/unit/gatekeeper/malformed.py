"""Request bodies that are not reviews, each with a word that the error must contain."""

import copy
from collections.abc import Callable
from typing import Any

from .reviews import Object, deployment, encode, review


def _with(path: str, value: Any, *, update: bool = False) -> bytes:
    """A valid review with one changed value. `...` removes the value."""
    body = copy.deepcopy(review(deployment("busybox:2"), deployment() if update else None))
    *parents, last = path.split(".")
    place: Object = body
    for parent in parents:
        place = place[parent]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return encode(body)


def _deep(make: Callable[[bytes], bytes]) -> bytes:
    return encode(review(deployment("DEEP"))).replace(b'"DEEP"', make(b"1"))


MALFORMED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "JSON"),
    "text": (b"hello", "JSON"),
    "half a review": (encode(review(deployment()))[:-20], "JSON"),
    "two reviews": (encode(review(deployment())) * 2, "JSON"),
    "a byte order mark": (b"\xef\xbb\xbf" + encode(review(deployment())), "JSON"),
    "NaN": (_with("request.object.spec.replicas", float("nan")), "JSON"),
    "a list": (b"[]", "expected `object`"),
    "null": (b"null", "expected `object`"),
    "a string": (b'"review"', "expected `object`"),
    "an empty object": (b"{}", "apiVersion"),
    "no apiVersion": (_with("apiVersion", ...), "apiVersion"),
    "another apiVersion": (_with("apiVersion", "admission.k8s.io/v1beta1"), "v1beta1"),
    "another kind": (_with("kind", "ConversionReview"), "ConversionReview"),
    "a kind that is a number": (_with("kind", 7), "kind"),
    "no request": (_with("request", ...), "request"),
    "request null": (_with("request", None), "request"),
    "request a list": (_with("request", []), "request"),
    "no uid": (_with("request.uid", ...), "uid"),
    "uid null": (_with("request.uid", None), "uid"),
    "uid a number": (_with("request.uid", 7), "uid"),
    "uid empty": (_with("request.uid", ""), "uid"),
    "uid overlong": (_with("request.uid", "u" * 10_000), "uid"),
    "no operation": (_with("request.operation", ...), "operation"),
    "an unknown operation": (_with("request.operation", "EXPLODE"), "operation"),
    "object null": (_with("request.object", None), "request.object"),
    "object missing": (_with("request.object", ...), "request.object"),
    "object a string": (_with("request.object", "sleep"), "object"),
    "oldObject null on update": (_with("request.oldObject", None, update=True), "request.oldObject"),
    "a Pod": (_with("request.object", {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": {}}), "v1 Pod"),
    "another resource": (_with("request.resource.resource", "statefulsets"), "statefulsets"),
    "another version": (_with("request.resource.version", "v1beta1"), "v1beta1"),
    "no metadata": (_with("request.object.metadata", ...), "metadata"),
    "metadata a list": (_with("request.object.metadata", []), "metadata"),
    "labels a list": (_with("request.object.metadata.labels", []), "labels"),
    "labels with numbers": (_with("request.object.metadata.labels", {"a": 1}), "labels"),
    "old labels a string": (_with("request.oldObject.metadata.labels", "x", update=True), "labels"),
    "no spec": (_with("request.object.spec", ...), "template"),
    "spec a number": (_with("request.object.spec", 7), "spec"),
    "no template": (_with("request.object.spec.template", ...), "template"),
    "template null": (_with("request.object.spec.template", None), "template"),
    "template a list": (_with("request.object.spec.template", []), "template"),
    "template a string": (_with("request.object.spec.template", "x"), "template"),
    "template metadata a list": (_with("request.object.spec.template.metadata", []), "metadata"),
    "template labels a list": (_with("request.object.spec.template.metadata.labels", ["a"]), "labels"),
    "template labels with numbers": (
        _with("request.object.spec.template.metadata.labels", {"a": 1}),
        "template.metadata",
    ),
    "old template a string": (_with("request.oldObject.spec.template", "x", update=True), "template"),
    "userInfo a string": (_with("request.userInfo", "admin"), "userInfo"),
    "10,000 lists deep": (_deep(lambda leaf: b"[" * 10_000 + leaf + b"]" * 10_000), "JSON"),
    "10,000 objects deep": (_deep(lambda leaf: b'{"a":' * 10_000 + leaf + b"}" * 10_000), "JSON"),
    "10,000 deep and never closed": (b"[" * 10_000, "expected `object`"),
    "300 deep in the template": (_deep(lambda leaf: b"[" * 300 + leaf + b"]" * 300), "template"),
    "half a surrogate": (_deep(lambda leaf: b'"\\ud800"'), "read"),
    "bytes that are no UTF-8": (_deep(lambda leaf: b'"\xff"'), "template"),
}
