"""Calls of admission webhooks."""
