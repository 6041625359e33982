"""The webhook configurations that send workloads of governed namespaces to the gatekeeper."""

import base64
from typing import Any

from altershield.admission.webhooks import MUTATING, VALIDATING, Webhook
from altershield.api import labels
from altershield.install.rbac import LABELS

Object = dict[str, Any]


def asked(webhook: Webhook) -> Object:
    """The part of a webhook that follows from the registry: its name and the requests that it is called for."""
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
    """What the chart's webhooks are made of, mutating and validating ones."""
    return {
        phase: [{"path": each.path, **asked(each)} for each in webhooks]
        for phase, webhooks in (("mutating", MUTATING), ("validating", VALIDATING))
    }


def configurations(name: str, url: str, ca_bundle: bytes, *, system_namespace: str) -> list[Object]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration called `name`, for a gatekeeper at
    `url` (`https://host:port`) whose certificate `ca_bundle` (PEM) vouches for. A webhook for a kind that the cluster
    does not have is never called.

    While the gatekeeper is down, a release may pass without a stamp (`Ignore`), but not without a verdict (`Fail`).
    """
    bundle = base64.b64encode(ca_bundle).decode()

    def configured(webhook: Webhook, timeout: int, failure_policy: str) -> Object:
        return {
            **asked(webhook),
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

    # Other webhooks may change the template after this one. The version must be that of the final template.
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
