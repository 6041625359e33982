"""PodUnavailableBudgets, as a person sees them."""
