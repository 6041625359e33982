"""Requests to URLs that tenants write: into which URLs, to which addresses, with which bounds and credentials."""
