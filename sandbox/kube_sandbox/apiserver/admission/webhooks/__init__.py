"""Admission webhooks: which are called, how, and what their answers mean."""
