"""Asks the API server and the caches about a release."""
