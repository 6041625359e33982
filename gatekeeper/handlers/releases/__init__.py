"""Releases: every release gets a version; none follows a failed one; the labels of AlterShield are its own."""
