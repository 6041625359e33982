"""The webhook configurations that send workloads of governed namespaces to the gatekeeper."""

import base64
from typing import Any

from altershield.admission.webhooks import MUTATING, VALIDATING, Webhook
from altershield.api import labels
from altershield.install.rbac import LABELS

Object = dict[str, Any]


def registered(webhook: Webhook) -> Object:
    """The fields of a webhook that follow from the registry: its name and the requests that it is called for."""
    resource, condition = webhook.resource, webhook.condition
    plural = f"{resource.plural}/{webhook.subresource}" if webhook.subresource else resource.plural
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": [resource.version],
        "operations": [str(operation) for operation in webhook.operations],
        "resources": [plural],
        "scope": "Namespaced" if resource.namespaced else "Cluster",
    }
    return {
        "name": webhook.name,
        "rules": [rule],
        **({"matchConditions": [{"name": condition.name, "expression": condition.expression}]} if condition else {}),
        "admissionReviewVersions": ["v1"],
        "sideEffects": "NoneOnDryRun" if webhook.does_io else "None",
        "matchPolicy": "Equivalent",
    }


def chart_values() -> dict[str, list[Object]]:
    """The values for the templates of the chart: the mutating and the validating webhooks."""
    return {
        phase: [{"path": each.path, **registered(each)} for each in webhooks]
        for phase, webhooks in (("mutating", MUTATING), ("validating", VALIDATING))
    }


def configurations(name: str, url: str, ca_bundle: bytes, *, system_namespace: str) -> list[Object]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration `name` for a gatekeeper at `url`
    (`https://host:port`). `ca_bundle` (PEM) is the CA of its certificate. The API server never calls a webhook for a
    kind that the cluster does not have.

    While the gatekeeper is down, the API server ignores the mutating webhooks (`Ignore`), because the reconciler adds a
    missing version later. It refuses releases that the validating webhooks did not review (`Fail`).
    """
    bundle = base64.b64encode(ca_bundle).decode()

    def configured(webhook: Webhook, timeout: int, failure_policy: str) -> Object:
        return {
            **registered(webhook),
            "clientConfig": {"url": url + webhook.path, "caBundle": bundle},
            "namespaceSelector": {
                "matchLabels": {labels.GOVERNED: labels.GOVERNED_VALUE},
                "matchExpressions": [
                    {
                        "key": "kubernetes.io/metadata.name",
                        "operator": "NotIn",
                        "values": ["kube-system", system_namespace],
                    }
                ],
            },
            "timeoutSeconds": timeout,
            "failurePolicy": failure_policy,
        }

    # Other webhooks may change the template later. The version must be that of the final template.
    mutating = [configured(each, 2, "Ignore") | {"reinvocationPolicy": "IfNeeded"} for each in MUTATING]
    validating = [configured(each, 3, "Fail") for each in VALIDATING]
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name, "labels": LABELS},
            "webhooks": webhooks,
        }
        for kind, webhooks in (
            ("MutatingWebhookConfiguration", mutating),
            ("ValidatingWebhookConfiguration", validating),
        )
    ]
