"""The garbage collector."""
