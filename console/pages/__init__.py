"""One file for each page: what it reads, and what its template gets."""
