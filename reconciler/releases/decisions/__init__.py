"""What follows for a release. Pure functions."""
