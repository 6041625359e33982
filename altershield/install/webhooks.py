"""The webhook configurations that send workloads of governed namespaces to the gatekeeper."""

import base64
from typing import Any, NamedTuple

from altershield.api import labels
from altershield.api.resources import Resource
from altershield.install.rbac import LABELS
from altershield.workloads import ADAPTERS, webhook_name, webhook_path

Object = dict[str, Any]


class Webhook(NamedTuple):
    """One webhook: what it is called, where it is reached, and which kind it judges."""

    name: str
    path: str
    resource: Resource
    mutating: bool


def _webhooks(*, mutating: bool) -> tuple[Webhook, ...]:
    resources = [adapter.resource for adapter in ADAPTERS]
    return tuple(
        Webhook(webhook_name(each, mutating=mutating), webhook_path(each, mutating=mutating), each, mutating)
        for each in resources
    )


MUTATING = _webhooks(mutating=True)
VALIDATING = _webhooks(mutating=False)
WEBHOOKS = (*MUTATING, *VALIDATING)

MATCH_CONDITIONS = (
    {
        "name": "template-or-labels-changed",
        "expression": "request.operation != 'UPDATE' || object.spec.template != oldObject.spec.template || "
        "object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})",
    },
)
"""Only labels and templates matter. Scaling, annotations and the bookkeeping of the kind's own controller, which are
most updates, go on without the gatekeeper even while none answers."""


def configurations(name: str, url: str, ca_bundle: bytes, *, system_namespace: str) -> list[Object]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration called `name`, for a gatekeeper at
    `url` (`https://host:port`) whose certificate `ca_bundle` (PEM) vouches for. Each has one webhook per kind; one for
    a kind that the cluster does not have is never called.

    While the gatekeeper is down nothing needs a stamp (`Ignore`), but no release may pass unjudged (`Fail`).
    """
    bundle = base64.b64encode(ca_bundle).decode()

    def configured(webhook: Webhook, timeout: int, failure_policy: str) -> Object:
        resource = webhook.resource
        return {
            "name": webhook.name,
            "clientConfig": {"url": url + webhook.path, "caBundle": bundle},
            "rules": [
                {
                    "apiGroups": [resource.group],
                    "apiVersions": [resource.version],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [resource.plural],
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

    # other webhooks may change the template after ours; the version must be that of the final one
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
