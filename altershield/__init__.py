"""The code that all processes share: the API types, access to Kubernetes, and pure decisions."""

__version__ = "0.1.0"
