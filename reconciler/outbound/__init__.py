"""Requests to URLs that tenants write: the allowed URLs and addresses, the bounds and the credentials."""
