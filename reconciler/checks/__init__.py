"""The checks of batches: one file for each."""
