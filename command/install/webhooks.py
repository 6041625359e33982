"""The webhook configurations that send requests to the gatekeeper."""

import base64
from typing import Any, NamedTuple

from altershield.admission.registration import Feature
from altershield.admission.webhooks import MUTATING, VALIDATING, Webhook
from altershield.api import labels, names
from altershield.api.names import INSTALLED

Object = dict[str, Any]


class _Settings(NamedTuple):
    """The default values of the chart for a kind of webhooks, below `webhooks` of values.yaml."""

    timeout: int
    failure_policy: str
    governed: bool
    """Whether API servers send only requests of governed namespaces."""


_SETTINGS = {
    # the reconciler adds a missing version later
    "mutating": _Settings(2, "Ignore", governed=True),
    "validating": _Settings(3, "Fail", governed=True),
    # such requests are rare, and an object without the label can be deleted; Namespaces and
    # CustomResourceDefinitions are in no namespace
    "deletions": _Settings(10, "Fail", governed=False),
    # without a gatekeeper, drains, rollouts, scale-downs and garbage collection go on
    "pods": _Settings(5, "Ignore", governed=True),
    # budgets that overlap are judged all the same
    "budgets": _Settings(3, "Ignore", governed=True),
}


def _settings(webhook: Webhook) -> str:
    """The key of the webhook's settings in the values of the chart."""
    if webhook.feature == Feature.RELEASES:
        return "mutating" if webhook.mutating else "validating"
    return webhook.feature


def registered(webhook: Webhook) -> Object:
    """The fields of a webhook that follow from the registry: its name, and the rules and conditions for its
    requests."""
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
        phase: [{"path": each.path, "settings": str(_settings(each)), **registered(each)} for each in webhooks]
        for phase, webhooks in (("mutating", MUTATING), ("validating", VALIDATING))
    }


def configurations(name: str, url: str, ca_bundle: bytes, *, system_namespace: str) -> list[Object]:
    """The MutatingWebhookConfiguration and the ValidatingWebhookConfiguration `name` for a gatekeeper at `url`
    (`https://host:port`). `ca_bundle` (PEM) is the CA of its certificate. The API server never calls a webhook for a
    kind that the cluster does not have.

    While the gatekeeper is down, API servers let requests pass (`Ignore`) or refuse them (`Fail`), as the settings of
    the webhook say.
    """
    bundle = base64.b64encode(ca_bundle).decode()
    governed = {
        "namespaceSelector": {
            "matchLabels": {labels.GOVERNED: labels.GOVERNED_VALUE},
            "matchExpressions": [
                {
                    "key": "kubernetes.io/metadata.name",
                    "operator": "NotIn",
                    "values": [*names.never_governed(system_namespace)],
                }
            ],
        }
    }

    def configured(webhook: Webhook) -> Object:
        settings = _SETTINGS[_settings(webhook)]
        return {
            **registered(webhook),
            "clientConfig": {"url": url + webhook.path, "caBundle": bundle},
            **(governed if settings.governed else {}),
            # Other webhooks may change the template later. The version must be that of the final template.
            **({"reinvocationPolicy": "IfNeeded"} if webhook.mutating else {}),
            "timeoutSeconds": settings.timeout,
            "failurePolicy": settings.failure_policy,
        }

    return [
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": name, "labels": INSTALLED},
            "webhooks": [configured(each) for each in webhooks],
        }
        for kind, webhooks in (
            ("MutatingWebhookConfiguration", MUTATING),
            ("ValidatingWebhookConfiguration", VALIDATING),
        )
    ]
