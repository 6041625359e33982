"""The client of an AlterShield server: it reports releases and batches, and reads the server's verdicts."""
