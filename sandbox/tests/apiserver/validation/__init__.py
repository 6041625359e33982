"""Validation of objects."""
