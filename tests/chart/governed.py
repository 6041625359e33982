"""Namespaces of a cluster that the release governs."""

import contextlib
from collections.abc import Iterator

from tests.e2e.sleep import sleep
from tests.support.kubectl import Kubectl
from tests.support.polling import eventually


@contextlib.contextmanager
def namespace(kubectl: Kubectl) -> Iterator[Kubectl]:
    """The namespace of `kubectl` exists inside the `with` block."""
    kubectl("create", "namespace", kubectl.namespace)
    try:
        yield kubectl
    finally:
        kubectl.run("delete", "namespace", kubectl.namespace)


@contextlib.contextmanager
def governed(kubectl: Kubectl) -> Iterator[None]:
    """The namespace of `kubectl` exists and is governed inside the `with` block."""
    with namespace(kubectl):
        govern(kubectl)
        yield


def govern(kubectl: Kubectl) -> None:
    label(kubectl)
    eventually(lambda: is_stamped(kubectl), "the namespace to be governed")


def label(kubectl: Kubectl) -> None:
    kubectl("label", "namespace", kubectl.namespace, "admission-webhook-altershield=enabled")


def is_stamped(kubectl: Kubectl) -> bool:
    """Whether a Deployment in the namespace now gets a version."""
    done = kubectl.run("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=sleep("probe"))
    return "antgroup" in done.stdout
