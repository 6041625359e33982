"""The sandbox's API."""
