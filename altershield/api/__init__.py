"""The API that users see: kinds, labels, states and names. Only values; this package does no I/O."""
