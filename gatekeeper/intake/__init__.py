"""Reads the body of a request within bounds: of bytes, time, memory, values and depth."""
