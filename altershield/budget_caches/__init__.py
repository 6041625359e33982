"""What the gatekeeper and the reconciler know of the cluster when they decide about PodUnavailableBudgets."""
