"""The API users see: kinds, labels, states and names. Pure values; nothing here does I/O."""
