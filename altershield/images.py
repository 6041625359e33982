"""The images of a pod template, as people name a version by them. Pure functions."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from altershield.texts import cut, one_line

Images = tuple[tuple[str, str], ...]
"""The containers of a template, in its order: their names, and their images without registry and path."""

_MAX_CONTAINERS = 16
_MAX_NAME = 63
_MAX_IMAGE = 80  # bytes
_NAMED = 2  # images that a text has
_DIGITS = 12  # of a digest


class _Container(msgspec.Struct, frozen=True, gc=False):
    name: str = ""
    image: str = ""


class _Spec(msgspec.Struct, frozen=True, gc=False):
    containers: tuple[_Container, ...] | None = None


_decode = msgspec.json.Decoder(_Spec).decode


def images_in(spec: msgspec.Raw | bytes) -> Images:
    """The images of a template with this spec, in JSON, without those of init containers; none if it cannot be read."""
    try:
        found = _decode(spec) if spec else _Spec()
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return ()
    return _images(tuple((each.name, each.image) for each in (found.containers or ())[:_MAX_CONTAINERS]))


def images_of(template: Mapping[str, Any]) -> Images:
    """The images of a pod template."""
    try:
        return images_in(msgspec.json.encode(template.get("spec")))
    except (TypeError, UnicodeEncodeError, RecursionError):
        return ()


def named(images: Images, before: Images = ()) -> str:
    """The images in one short text: `web:2.3`, or `web:2.3,proxy:1.1 +1` for three containers. Those that differ from
    `before`, the images of the version before, come first. Empty if none is known."""
    known = dict(before)
    changed = [image for name, image in images if known.get(name) != image]
    same = [image for name, image in images if known.get(name) == image]
    distinct = list(dict.fromkeys((*changed, *same)))
    more = f" +{len(distinct) - _NAMED}" if len(distinct) > _NAMED else ""
    return f"{','.join(distinct[:_NAMED])}{more}"


def short(image: str) -> str:
    """An image without its registry and path, `web:1.2`. A digest, cut to 12 digits, stands for a tag that is not
    there: `web@0123456789ab`."""
    name, at, digest = image.rpartition("/")[2].partition("@")
    text = f"{name}@{digest.rpartition(':')[2][:_DIGITS]}" if at and ":" not in name else name
    return one_line(text, _MAX_IMAGE)


@lru_cache(maxsize=4096)
def _images(containers: tuple[tuple[str, str], ...]) -> Images:
    """Workloads with equal images share one object."""
    return tuple((sys.intern(cut(name, _MAX_NAME)), sys.intern(short(image))) for name, image in containers)
