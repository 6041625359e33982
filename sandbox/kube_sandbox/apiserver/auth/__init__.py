"""Authentication, authorization and ServiceAccount tokens."""
