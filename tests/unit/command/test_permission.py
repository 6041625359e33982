"""What commands say to a user who lacks a permission, on the authorizer of the sandbox."""

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from altershield.views import permission
from command.breaker.command import open_, reset
from command.breaker.command import status as breakers
from command.history.command import history
from command.installation import InstallationStoppedError, running_installation
from command.protection.changing import protect, unprotect
from command.requests.why import why
from kube_base.access.errors import ForbiddenError
from kube_base.errors import ReportedError
from kube_sandbox.apiserver.server import ApiServer
from reconciler.thresholds import Thresholds

PROTECTED = "policy.kruise.io/delete-protection"


@pytest.fixture
async def kubeconfig(tmp_path: Path) -> AsyncIterator[Path]:
    """The kubeconfig of a user without permissions."""
    async with ApiServer() as api:
        (path := tmp_path / "kubeconfig").write_text(api.kubeconfig(api.add_token("ann"), namespace="shop"))
        yield path


def forbidden(plural: str, name: str, verb: str, group: str, place: str = ' in the namespace "shop"') -> str:
    """The text of the API server."""
    full = f"{plural}.{group}".removesuffix(".")
    where = place or " at the cluster scope"
    named = f' "{name}"' if name else ""
    return f'{full}{named} is forbidden: User "ann" cannot {verb} resource "{plural}" in API group "{group}"{where}'


@pytest.mark.parametrize(
    ("command", "arguments", "text"),
    [
        (
            protect, ["deploy", "web"],
            'cannot protect deployment.apps/web in namespace "shop": '
            + forbidden("deployments", "web", "patch", "apps")
            + '; ask for the ClusterRole edit in namespace "shop"',
        ),
        (
            unprotect, ["ns/shop"],
            "cannot unprotect namespace/shop: "
            + forbidden("namespaces", "shop", "patch", "")
            + "; ask for a role with the verb patch on namespaces",
        ),
        (
            protect, ["crd/widgets.example.com"],
            "cannot protect customresourcedefinition.apiextensions.k8s.io/widgets.example.com: "
            + forbidden("customresourcedefinitions", "widgets.example.com", "patch", "apiextensions.k8s.io", "")
            + "; ask for a role with the verb patch on customresourcedefinitions.apiextensions.k8s.io",
        ),
        (
            history, ["deploy", "web"],
            'cannot read deployments.apps in namespace "shop": '
            + forbidden("deployments", "web", "get", "apps")
            + '; ask for the ClusterRole view in namespace "shop"',
        ),
        (
            why, ["pod", "web-1"],
            'cannot read pod web-1 in namespace "shop": '
            + forbidden("pods", "web-1", "get", "")
            + '; ask for the ClusterRole view in namespace "shop"',
        ),
        (
            open_, "guard",
            "cannot read PodDeletionFlowControl guard: "
            + forbidden("poddeletionflowcontrols", "guard", "get", "app.ops.cloud.alipay.com", "")
            + "; ask for the ClusterRole altershield-breaker in all namespaces",
        ),
        (
            reset, "guard",
            "cannot read PodDeletionFlowControl guard: "
            + forbidden("poddeletionflowcontrols", "guard", "get", "app.ops.cloud.alipay.com", "")
            + "; ask for the ClusterRole altershield-breaker in all namespaces",
        ),
        (
            breakers, "",
            "cannot list PodDeletionFlowControls: "
            + forbidden("poddeletionflowcontrols", "", "list", "app.ops.cloud.alipay.com", "")
            + "; ask for the ClusterRole view in all namespaces",
        ),
    ],
)  # fmt: skip
async def test_command_says_what_is_not_allowed_and_which_role_allows_it(
    kubeconfig: Path, command: Callable[..., None], arguments: Any, text: str
) -> None:
    with pytest.raises(ReportedError) as raised:
        await asyncio.to_thread(command, arguments, kubeconfig=str(kubeconfig))
    assert str(raised.value) == text


async def test_dev_says_what_is_not_allowed_and_which_role_allows_it(kubeconfig: Path, tmp_path: Path) -> None:
    with pytest.raises(InstallationStoppedError) as raised:
        async with running_installation(str(kubeconfig), tmp_path, Thresholds()):
            raise AssertionError("it is not installed")
    said = str(raised.value)
    assert said.startswith("cannot install AlterShield in the cluster at https://127.0.0.1:")
    assert 'User "ann" cannot list resource "validatingwebhookconfigurations"' in said
    assert said.endswith("; ask for the ClusterRole cluster-admin in all namespaces")


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ('pods is forbidden: User "system:serviceaccount:a:b" cannot list resource "pods" in API group ""', True),
        ('forbidden: User "ann" cannot get path "/metrics"', True),
        ('clusterroles "a" is forbidden: user "ann" (groups=["x"]) is attempting to grant RBAC permissions not '
         "currently held:", True),
        ('admission webhook "x.io" denied the request: no', False),
        ("ValidatingAdmissionPolicy 'x' with binding 'y' denied request: no", False),
    ],
)  # fmt: skip
def test_role_is_advised_only_if_a_permission_is_missing(text: str, missing: bool) -> None:
    said = permission.refused("do it", ForbiddenError(text, code=403), permission.role("edit", ""))
    assert said == f"cannot do it: {text}" + ("; ask for the ClusterRole edit in all namespaces" if missing else "")
