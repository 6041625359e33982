"""Workloads are named as in kubectl."""

import pytest

from altershield.views.selection import EVERYTHING, Selection, parse
from altershield.workloads import ADAPTERS, Adapter
from kube_base.errors import UsageError
from tests.support.workloads import BY_NAME

DEPLOYMENTS, STATEFUL_SETS = BY_NAME["Deployment"], BY_NAME["StatefulSet"]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.resource.plural)
def test_parse_accepts_every_form_of_a_type(adapter: Adapter) -> None:
    resource = adapter.resource
    for kind in (
        resource.kind,
        resource.kind.lower(),
        resource.plural,
        *adapter.short_names,
        f"{resource.plural}.{resource.group}",
        f"{resource.plural}.{resource.version}.{resource.group}",
    ):
        assert parse([f"{kind}/web"]) == [Selection((adapter,), "web")]
        assert parse([kind, "web", "api"]) == [Selection((adapter,), "web"), Selection((adapter,), "api")]
        assert parse([kind]) == [Selection((adapter,), "")]


def test_short_names_of_types_are_those_of_kubectl() -> None:
    assert [adapter.short_names for adapter in ADAPTERS] == [("deploy",), ("sts",), ("ds",), ("clone",)]


def test_name_without_a_type_means_all_types() -> None:
    assert parse(["web"]) == [Selection(ADAPTERS, "web")]
    assert parse([]) == [EVERYTHING]


def test_parse_accepts_several_workloads() -> None:
    assert parse(["deploy/web", "sts/db", "cache"]) == [
        Selection((DEPLOYMENTS,), "web"),
        Selection((STATEFUL_SETS,), "db"),
        Selection(ADAPTERS, "cache"),
    ]
    assert parse(["web", "db"]) == [Selection(ADAPTERS, "web"), Selection(ADAPTERS, "db")]


@pytest.mark.parametrize(
    "argument", ["job/web", "a/b/c", "/web", "statefulset/", "deployments.batch/web", "", "deploy,sts", "a b", "-"]
)
def test_invalid_argument_is_a_usage_error_with_the_list_of_types(argument: str) -> None:
    with pytest.raises(UsageError, match=r"deployment \(deploy\), statefulset \(sts\), daemonset \(ds\), cloneset"):
        parse([argument])


@pytest.mark.parametrize("arguments", [["deploy/Web"], ["deploy", "Web"], ["db", "deploy/Web"]])
def test_name_after_a_type_that_no_workload_can_have_is_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(UsageError, match=r'^no workload can have the name "Web"$'):
        parse(arguments)


def test_empty_name_after_a_type_does_not_mean_all_workloads() -> None:
    with pytest.raises(UsageError, match='"" is not a workload'):
        parse(["deploy", ""])
