"""Reads, writes, deletes and watches, sent over HTTP."""
