"""The code that all processes share: the API, access to Kubernetes, and the `altershield` command."""

__version__ = "0.1.0"
