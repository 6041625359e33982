"""HTTP in and out: requests, answers, encodings, discovery."""
