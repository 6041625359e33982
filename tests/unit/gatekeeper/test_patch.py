import copy
from typing import Any

import jsonpatch
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from altershield.api import labels
from gatekeeper.dispatch import patch
from gatekeeper.handlers.releases.workload import Workload
from gatekeeper.response import Wanted

keys = st.sampled_from(["app", "a/b", "a~b", "~1/~0", labels.VERSION, labels.SUSPEND, ""])
values = st.sampled_from(["", "x", "y"])
wanted = st.dictionaries(keys, st.none() | values, max_size=4)
metadata = st.none() | st.fixed_dictionaries(
    {}, optional={"labels": st.none() | st.dictionaries(keys, values, max_size=4), "annotations": st.just({"a": "b"})}
)


def workload(own: dict[str, Any], template: dict[str, Any] | None, *, absent: bool = False) -> dict[str, Any]:
    pod = {"spec": {}} if absent else {"metadata": template, "spec": {}}
    return {"metadata": own, "spec": {"replicas": 1, "template": pod}}


def labels_of(obj: dict[str, Any] | None) -> dict[str, str]:
    return (obj or {}).get("labels") or {}


@given(metadata.filter(lambda m: m is not None), metadata, st.booleans(), wanted, wanted)
def test_patch_sets_exactly_the_wanted_labels_and_a_second_patch_is_empty(
    own: dict[str, Any], template: dict[str, Any] | None, absent: bool, own_wanted: Wanted, template_wanted: Wanted
) -> None:
    obj = workload(own, template, absent=absent)
    decode = msgspec.json.Decoder(Workload).decode
    first = patch(decode(msgspec.json.encode(obj)), own_wanted, template_wanted)
    after = jsonpatch.apply_patch(copy.deepcopy(obj), first)

    def expected(before: dict[str, Any] | None, changes: Wanted) -> dict[str, str]:
        merged = {**labels_of(before), **changes}
        return {key: value for key, value in merged.items() if value is not None}

    assert labels_of(after["metadata"]) == expected(own, own_wanted)
    assert labels_of(after["spec"]["template"].get("metadata")) == expected(
        None if absent else template, template_wanted
    )
    assert after["spec"]["replicas"] == 1
    assert patch(decode(msgspec.json.encode(after)), own_wanted, template_wanted) == []


@given(metadata.filter(lambda m: m is not None), metadata, wanted)
def test_patch_changes_only_labels_that_differ(
    own: dict[str, Any], template: dict[str, Any] | None, own_wanted: Wanted
) -> None:
    obj = workload(own, template)
    found = patch(msgspec.json.decode(msgspec.json.encode(obj), type=Workload), own_wanted, {})
    differing = [key for key, value in own_wanted.items() if labels_of(own).get(key) != value]
    assert len(found) == (min(1, len(differing)) if own.get("labels") is None else len(differing))


def test_patch_escapes_slashes_and_tildes_in_keys() -> None:
    obj = msgspec.json.decode(b'{"metadata": {"labels": {"a/b~c": "x"}}}', type=Workload)
    assert patch(obj, {"a/b~c": None}, {}) == [{"op": "remove", "path": "/metadata/labels/a~1b~0c"}]
