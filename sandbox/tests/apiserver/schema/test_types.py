"""The tables of type information name existing models and fields only."""

import importlib

from kube_sandbox.apiserver.schema import type_tables, types


def _all_models() -> list[str]:
    models = importlib.import_module("kubernetes_asyncio.client.models")  # half a second, which no other worker needs
    return [name for name in dir(models) if hasattr(getattr(models, name), "openapi_types")]


def test_every_table_entry_names_an_existing_field() -> None:
    for line in type_tables.PRESENCE.replace("\n  ", " ").strip().splitlines():
        model, *names = line.split()
        assert {name.lstrip("!?") for name in names} <= set(types.fields(model)), model
    for table in (type_tables.MERGED_LISTS, type_tables.APPLIED_LISTS, type_tables.PATCHED_LISTS):
        for model, lists in table.items():
            for name, keys in lists.items():
                items = types.fields(model)[name].type.items
                assert items is not None
                assert set(keys.split()) <= set(types.fields(items.model)), (model, name)
    for path in (
        *type_tables.SETS,
        *type_tables.ATOMIC_MAPS,
        *type_tables.BYTES,
        *type_tables.REPLACED_BY_PATCH,
        *type_tables.GRANULAR_STRUCTS,
    ):
        model, _, name = path.partition(".")
        assert name in types.fields(model), path


def test_every_field_of_every_client_model_has_a_go_type() -> None:
    for name in _all_models():
        for field in types.fields(name).values():
            assert field.type.go_name


def test_model_is_found_by_api_version_and_kind() -> None:
    assert types.model_of("apps/v1", "Deployment") == "V1Deployment"
    assert types.model_of("v1", "Event") == "CoreV1Event"
    assert types.model_of("events.k8s.io/v1", "Event") == "EventsV1Event"
    assert types.model_of("autoscaling/v2", "HorizontalPodAutoscaler") == "V2HorizontalPodAutoscaler"
    assert types.model_of("app.ops.cloud.alipay.com/v1alpha1", "ChangePod") is None
    assert types.model_of("apps/v1", "Nothing") is None
