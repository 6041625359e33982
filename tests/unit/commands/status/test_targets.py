"""Workloads are named as for kubectl."""

import pytest

from altershield.commands.status.targets import EVERYTHING, Target, parse
from altershield.errors import UsageError
from altershield.workloads import ADAPTERS, BY_KIND, Adapter

DEPLOYMENTS, STATEFUL_SETS = BY_KIND["Deployment"], BY_KIND["StatefulSet"]


@pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda each: each.resource.plural)
def test_a_type_may_be_written_in_full_in_the_plural_short_and_with_its_group(adapter: Adapter) -> None:
    resource = adapter.resource
    for kind in (
        resource.kind,
        resource.kind.lower(),
        resource.plural,
        *adapter.short_names,
        f"{resource.plural}.{resource.group}",
        f"{resource.plural}.{resource.version}.{resource.group}",
    ):
        assert parse([f"{kind}/web"]) == [Target((adapter,), "web")]
        assert parse([kind, "web", "api"]) == [Target((adapter,), "web"), Target((adapter,), "api")]
        assert parse([kind]) == [Target((adapter,), "")]


def test_kubectls_short_names_are_known() -> None:
    assert [adapter.short_names for adapter in ADAPTERS] == [("deploy",), ("sts",), ("ds",), ("clone",)]


def test_a_name_without_a_type_is_looked_for_in_all_types() -> None:
    assert parse(["web"]) == [Target(ADAPTERS, "web")]
    assert parse([]) == [EVERYTHING]


def test_several_workloads_may_be_named() -> None:
    assert parse(["deploy/web", "sts/db", "cache"]) == [
        Target((DEPLOYMENTS,), "web"),
        Target((STATEFUL_SETS,), "db"),
        Target(ADAPTERS, "cache"),
    ]
    assert parse(["web", "db"]) == [Target(ADAPTERS, "web"), Target(ADAPTERS, "db")]


@pytest.mark.parametrize("argument", ["job/web", "a/b/c", "/web", "statefulset/", "deployments.batch/web"])
def test_what_names_no_workload_is_refused_with_the_types_there_are(argument: str) -> None:
    with pytest.raises(UsageError, match=r"deployment \(deploy\), statefulset \(sts\), daemonset \(ds\), cloneset"):
        parse([argument])
