"""The caches and live reads from which the gatekeeper and the reconciler decide about PodUnavailableBudgets."""
