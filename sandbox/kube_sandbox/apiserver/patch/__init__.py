"""The four kinds of patches, and who owns which field."""
