"""What is so about a release. Pure functions."""
