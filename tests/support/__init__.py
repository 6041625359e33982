"""Helpers that several test packages share: polling, processes, kubectl."""
