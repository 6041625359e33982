"""Admission: built-in plugins and webhooks."""
