"""Releases in steps, as gatekeeper and reconciler agree on them. Pure functions."""
