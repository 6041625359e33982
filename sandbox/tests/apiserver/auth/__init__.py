"""Authentication and authorization in the API server."""
