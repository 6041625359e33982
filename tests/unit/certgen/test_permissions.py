"""The reconciler's RBAC rules, and writes that are forbidden."""

import base64

import pytest

from certgen.metrics import Metrics
from certgen.reconciler import CertificateReconciler
from kube_base.access.client import Client
from kube_base.access.errors import ForbiddenError
from kube_base.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, ROLE_BINDINGS, ROLES, SECRETS, VALIDATING_WEBHOOKS

from .api import (
    CLUSTER_RULES,
    CONFIGURATION,
    NAMESPACE,
    NAMESPACE_RULES,
    SECRET,
    SETTINGS,
    Api,
    Forbidden,
    eventually,
    reconciled,
    running,
    stored,
    unusable,
)


async def test_service_account_needs_exactly_these_rbac_rules(api: Api, client: Client) -> None:
    user = f"system:serviceaccount:{NAMESPACE}:altershield"
    subject = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    for role, binding, namespace, rules in (
        (ROLES, ROLE_BINDINGS, NAMESPACE, NAMESPACE_RULES),
        (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS, "", CLUSTER_RULES),
    ):
        await client.create(role, {"metadata": {"name": "certgen"}, "rules": rules}, namespace)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": role.kind, "name": "certgen"}
        grant = {"metadata": {"name": "certgen"}, "roleRef": reference, "subjects": [subject]}
        await client.create(binding, grant, namespace)
    async with await api.connect(user) as restricted:
        async with running(CertificateReconciler(restricted, SETTINGS)):
            await eventually(lambda: reconciled(client))
            await client.delete(SECRETS, SECRET, NAMESPACE)
            await eventually(lambda: reconciled(client))
        with pytest.raises(ForbiddenError):
            await restricted.list(SECRETS, NAMESPACE)


async def test_forbidden_write_of_one_configuration_does_not_prevent_the_other(
    api: Api, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    async with await api.connect(as_=Forbidden) as restricted:
        metrics = Metrics()
        reconciler = CertificateReconciler(restricted, SETTINGS, metrics)
        async with running(reconciler):

            async def published() -> bool:
                webhooks = (await client.get(VALIDATING_WEBHOOKS, CONFIGURATION))["webhooks"]
                bundle = base64.b64decode(webhooks[0]["clientConfig"].get("caBundle", ""))
                return bundle == (await stored(client)).bundle

            await eventually(published)
            await eventually(lambda: unusable(metrics))
            assert "API servers do not trust the certificate yet: not allowed" in reconciler.not_ready
    assert len([record for record in caplog.records if "cannot reconcile the certificate" in record.message]) == 1
