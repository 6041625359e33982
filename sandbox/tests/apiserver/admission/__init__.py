"""Admission in the API server."""
