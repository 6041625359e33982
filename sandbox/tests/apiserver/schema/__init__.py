"""Fields, types and defaults of the Kubernetes kinds, and CEL."""
