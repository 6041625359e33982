"""What clients stored about a pod template: what is kept, and what a rollback restores."""

import json
from typing import Any

import msgspec
import pytest

from altershield.workloads import applied
from altershield.workloads.applied import LAST_APPLIED, MAX_ANNOTATIONS, MAX_STORED, Applied, Entry, Manager

Object = dict[str, Any]
OLD: Object = {"spec": {"containers": [{"name": "app", "image": "web:1"}]}}
NEW: Object = {"spec": {"containers": [{"name": "app", "image": "web:2"}]}}
FIELDS: Object = {"f:spec": {"f:containers": {}}}


def entry(manager: str, fields: Object, operation: str = "Update", **more: str) -> Object:
    return {"manager": manager, "operation": operation, "apiVersion": "apps/v1", "fieldsV1": fields, **more}


def owning(template: Object, **spec: Object) -> Object:
    return {"f:spec": {**{f"f:{key}": value for key, value in spec.items()}, "f:template": template}}


def annotated(*, labels: bool = False) -> Object:
    own = {"f:annotations": {f"f:{LAST_APPLIED}": {}}}
    return {"f:metadata": {**own, **({"f:labels": {}} if labels else {})}}


def workload(*entries: Object, manifest: Object | str | None = None, **annotations: str) -> Object:
    if manifest is not None:
        annotations[LAST_APPLIED] = manifest if isinstance(manifest, str) else json.dumps(manifest)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "annotations": annotations, "managedFields": list(entries)},
    }


def manifest_of(template: Object | None, **spec: Any) -> Object:
    return {"kind": "Deployment", "spec": {**spec, **({"template": template} if template is not None else {})}}


# what is kept


def test_managers_of_the_template_and_of_the_annotation_are_kept() -> None:
    obj = workload(
        entry("kubectl-client-side-apply", owning(FIELDS, replicas={}) | annotated()),
        entry("flux", owning(FIELDS), "Apply"),
        entry("scaler", {"f:spec": {"f:replicas": {}}}),
        entry("controller", owning(FIELDS), subresource="status"),
        manifest=manifest_of(OLD, replicas=3),
    )
    assert applied.of(obj) == Applied(
        OLD,
        (
            Manager("flux", "Apply", "apps/v1", FIELDS),
            Manager("kubectl-client-side-apply", "Update", "apps/v1", FIELDS, True),
        ),
    )


def test_nothing_is_kept_while_the_template_belongs_to_altershield() -> None:
    assert applied.of(workload(entry("altershield", owning(FIELDS)))) is None
    assert applied.of(workload(entry("altershield", {"f:metadata": {"f:labels": {}}}))) == Applied()


@pytest.mark.parametrize("manifest", ["", "{", "[]", "{}", '{"spec":1}', '{"spec":{"template":[]}}', "[" * 100_000])
def test_unreadable_manifest_has_no_template(manifest: str) -> None:
    found = applied.of(workload(manifest=manifest))
    assert found is not None
    assert found.template is None


def test_stored_form_is_bounded_and_read_again() -> None:
    kept = Applied(OLD, (Manager("flux", "Apply", "apps/v1", FIELDS),))
    assert applied.decoded(applied.encoded(kept)) == kept
    assert applied.encoded(Applied({"x": "y" * MAX_STORED})) == ""
    assert [applied.decoded(text) for text in (None, "", "{", "[]")] == [None] * 4


def digest(obj: Object) -> str:
    entries = msgspec.convert(obj["metadata"]["managedFields"], tuple[Object, ...])
    decoded = msgspec.json.decode(msgspec.json.encode(entries), type=tuple[Entry, ...])
    return applied.digest(obj["metadata"]["annotations"], decoded)


def test_digest_changes_with_what_is_kept_and_not_with_other_writes() -> None:
    first = workload(entry("flux", owning(FIELDS), time="1"), manifest=manifest_of(OLD))
    same = workload(
        entry("flux", owning(FIELDS), time="2"),
        entry("controller", {"f:status": {}}, subresource="status"),
        entry("scaler", {"f:spec": {"f:replicas": {}}}),
        manifest=manifest_of(OLD),
        note="1",
    )
    assert digest(first) == digest(same) != ""
    others = (
        workload(entry("kubectl", owning(FIELDS)), manifest=manifest_of(OLD)),
        workload(entry("flux", owning({})), manifest=manifest_of(OLD)),
        workload(entry("flux", owning(FIELDS)), manifest=manifest_of(NEW)),
        workload(entry("flux", owning(FIELDS))),
    )
    assert len({digest(each) for each in (first, *others)}) == 5
    assert digest(workload()) == ""


# the annotation of `kubectl apply`


@pytest.mark.parametrize(
    ("before", "kept", "after"),
    [
        (manifest_of(NEW, replicas=3), OLD, manifest_of(OLD, replicas=3)),
        (manifest_of(OLD), OLD, None),
        (manifest_of(NEW, replicas=3), None, manifest_of(None, replicas=3)),
        (manifest_of(None), None, None),
        (None, None, None),
        (
            None,
            OLD,
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"template": OLD},
            },
        ),
        ("{", OLD, None),
    ],
)
def test_manifest_gets_the_template_of_then_and_keeps_the_rest(
    before: Object | str | None, kept: Object | None, after: Object | None
) -> None:
    found = applied.last_applied(workload(manifest=before), Applied(kept))
    assert (json.loads(found) if found is not None else None) == after
    assert found is None or found.endswith("}\n"), "as kubectl writes it"


def test_annotation_that_would_be_too_long_stays() -> None:
    obj = workload(manifest=manifest_of(NEW), note="n" * (MAX_ANNOTATIONS - 100))
    assert applied.last_applied(obj, Applied(OLD)) is None


# field managers

CLIENT = Manager("kubectl-client-side-apply", "Update", "apps/v1", FIELDS, True)
FLUX = Manager("flux", "Apply", "apps/v1", FIELDS)
STATUS = entry("controller", {"f:status": {}}, subresource="status")


@pytest.mark.parametrize(
    ("before", "managers", "after"),
    [
        # the rest of each entry stays
        (
            [
                entry("altershield", owning(FIELDS) | {"f:metadata": {"f:labels": {}}}),
                entry("flux", owning({}, replicas={}), "Apply"),
                STATUS,
            ],
            (FLUX,),
            [
                entry("altershield", {"f:metadata": {"f:labels": {}}}),
                entry("flux", owning(FIELDS, replicas={}), "Apply"),
                STATUS,
            ],
        ),
        # the manager of the failed version owns nothing in the template any more
        (
            [entry("altershield", owning(FIELDS)), entry("edit", owning(FIELDS, replicas={}))],
            (FLUX,),
            [
                entry("edit", {"f:spec": {"f:replicas": {}}}),
                entry("flux", owning(FIELDS), "Apply", fieldsType="FieldsV1", time="9"),
            ],
        ),
        # the annotation goes back to its owner
        (
            [entry("altershield", owning(FIELDS) | annotated()), entry(CLIENT.manager, owning({}))],
            (CLIENT,),
            [entry(CLIENT.manager, annotated() | owning(FIELDS))],
        ),
        # also if only the failed version was applied by such a client
        (
            [entry("altershield", annotated(labels=True)), entry("flux", owning(FIELDS), "Apply")],
            (FLUX,),
            [
                entry("altershield", {"f:metadata": {"f:labels": {}}}),
                entry("flux", owning(FIELDS), "Apply"),
                entry(CLIENT.manager, annotated(), fieldsType="FieldsV1", time="9"),
            ],
        ),
    ],
)
def test_template_belongs_again_to_the_managers_of_then(
    before: list[Object], managers: tuple[Manager, ...], after: list[Object]
) -> None:
    before[0]["time"] = "9"
    wanted = {json.dumps(each | {"time": ""}, sort_keys=True) for each in after}
    found = applied.managed_fields(workload(*before), Applied(OLD, managers))
    assert found is not None
    assert {json.dumps(each | {"time": ""}, sort_keys=True) for each in found} == wanted
    assert applied.managed_fields(workload(*found), Applied(OLD, managers)) is None, "a second call changes nothing"


def test_template_of_unknown_managers_belongs_to_nobody() -> None:
    obj = workload(entry("altershield", owning(FIELDS)), entry("edit", owning(FIELDS)))
    assert applied.managed_fields(obj, None) == [entry("edit", owning(FIELDS))]
    assert applied.managed_fields(workload(entry("edit", owning(FIELDS))), None) is None


# what nobody checked


@pytest.mark.parametrize(
    "value",
    ['"\\ud800"', "NaN", "1" + "0" * 30, '{"a":' * 900 + "1" + "}" * 900, '{"a":' * 20_000 + "1" + "}" * 20_000],
    ids=["surrogate", "nan", "big", "deep", "too-deep"],
)
def test_any_manifest_of_a_client_can_be_kept_and_restored(value: str) -> None:
    for manifest in (f'{{"spec":{{"template":{{"a":{value}}}}}}}', f'{{"x":{value},"spec":{{"template":{{}}}}}}'):
        obj = workload(manifest=manifest)
        kept = applied.of(obj)
        if kept is not None:
            assert applied.decoded(applied.encoded(kept)) is not None
        applied.last_applied(obj, Applied(OLD))


def test_entry_without_fields_gets_those_of_then() -> None:
    without: Object = {"manager": "kubectl", "operation": "Update", "apiVersion": "apps/v1"}
    found = applied.managed_fields(workload(without), Applied(None, (Manager("kubectl", "Update", "apps/v1", FIELDS),)))
    assert found is not None
    assert found[0]["fieldsV1"] == owning(FIELDS)


def test_order_of_two_entries_of_one_manager_does_not_matter() -> None:
    entries = [entry("kubectl", owning(FIELDS)), {**entry("kubectl", owning({})), "apiVersion": "apps/v1beta2"}]
    assert digest(workload(*entries)) == digest(workload(*reversed(entries)))
    assert applied.of(workload(*entries)) == applied.of(workload(*reversed(entries)))
