"""The releases of workloads, as a person sees them."""
