"""Admission: built-in plugins and admission webhooks."""
