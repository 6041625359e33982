"""Small mistakes in what decides, each of which a fast test has to notice."""
