"""The metric of notifications."""

from prometheus_client import CollectorRegistry, Counter

from reconciler.receivers.vocabulary import NotificationResult, Type


def notifications(registry: CollectorRegistry) -> Counter:
    """The counter, with its labels `type` and `result`."""
    made = Counter(
        "altershield_notifications",
        "Notifications, by the type of the receiver. `failed`: the receiver refused it. `dropped`: too many "
        "waited, or it could not be sent for an hour.",
        ["type", "result"],
        registry=registry,
    )
    for type_ in Type:
        for sent in NotificationResult:
            made.labels(type_, sent)
    return made
