"""The pods of a release. Without I/O."""
