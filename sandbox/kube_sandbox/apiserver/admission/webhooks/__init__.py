"""Admission webhooks: matching, calls, and the evaluation of responses."""
