"""The webhook configurations that send Deployments of governed namespaces to the gatekeeper."""

import base64
from typing import Any

from altershield.api import labels
from altershield.install.rbac import LABELS

Object = dict[str, Any]

MUTATING_WEBHOOK = "mdeployment.kb.io"
VALIDATING_WEBHOOK = "vdeployment.kb.io"
MUTATING_PATH = "/mutate-apps-v1-deployment"
VALIDATING_PATH = "/validate-apps-v1-deployment"

MATCH_CONDITIONS = (
    {
        "name": "template-or-labels-changed",
        "expression": "request.operation != 'UPDATE' || object.spec.template != oldObject.spec.template || "
        "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})",
    },
)
"""Only labels and templates matter. Scaling, annotations and the deployment controller's bookkeeping, which are most
updates, go on without the gatekeeper even while none answers."""


def configurations(name: str, url: str, ca_bundle: bytes, *, system_namespace: str) -> list[Object]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration called `name`, for a gatekeeper at
    `url` (`https://host:port`) whose certificate `ca_bundle` (PEM) vouches for.

    While the gatekeeper is down nothing needs a stamp (`Ignore`), but no release may pass unjudged (`Fail`).
    """

    def webhook(webhook_name: str, path: str, timeout: int, failure_policy: str) -> Object:
        return {
            "name": webhook_name,
            "clientConfig": {"url": url + path, "caBundle": base64.b64encode(ca_bundle).decode()},
            "rules": [
                {
                    "apiGroups": ["apps"],
                    "apiVersions": ["v1"],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": ["deployments"],
                    "scope": "Namespaced",
                }
            ],
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
            "matchConditions": list(MATCH_CONDITIONS),
            "admissionReviewVersions": ["v1"],
            "sideEffects": "None",
            "matchPolicy": "Equivalent",
            "timeoutSeconds": timeout,
            "failurePolicy": failure_policy,
        }

    mutating = webhook(MUTATING_WEBHOOK, MUTATING_PATH, 2, "Ignore")
    # other webhooks may change the template after ours; the version must be that of the final one
    mutating["reinvocationPolicy"] = "IfNeeded"
    validating = webhook(VALIDATING_WEBHOOK, VALIDATING_PATH, 3, "Fail")
    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name, "labels": LABELS},
            "webhooks": [content],
        }
        for kind, content in (
            ("MutatingWebhookConfiguration", mutating),
            ("ValidatingWebhookConfiguration", validating),
        )
    ]
