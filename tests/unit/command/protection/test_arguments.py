"""How the arguments of `altershield protect` name kinds and objects."""

import pytest

from command.protection.arguments import kinds, parse
from kube_base.errors import UsageError


@pytest.mark.parametrize(
    ("argument", "plural"),
    [
        ("deploy/web", "deployments.apps"),
        ("StatefulSet/db", "statefulsets.apps"),
        ("statefulsets.apps.kruise.io/db", "statefulsets.apps.kruise.io"),
        ("asts/db", "statefulsets.apps.kruise.io"),
        ("crd/widgets.example.com", "customresourcedefinitions.apiextensions.k8s.io"),
        ("ns/shop", "namespaces"),
    ],
)
def test_argument_names_the_kind_as_in_kubectl(argument: str, plural: str) -> None:
    assert parse([argument])[0].kind.plural == plural


@pytest.mark.parametrize("argument", ["web", "pod/web", "deploy/", "deploy/Web", "deploy.batch/web", ""])
def test_argument_that_names_no_protected_kind_is_refused(argument: str) -> None:
    with pytest.raises(UsageError, match="cannot be protected; write TYPE/NAME or TYPE NAME"):
        parse([argument])


def test_completion_offers_each_kind_once() -> None:
    assert kinds("dep") == ["deployment/"]
    assert len(kinds("")) == len(set(kinds("")))
