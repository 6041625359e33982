"""The read side: what a person may read, with that person's rights, as values. Nothing is printed here."""
