"""Patches, server-side apply and managedFields."""
