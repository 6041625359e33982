"""The four types of patches, and the ownership of fields by managers."""
