"""What goes into a decision, and what comes out of it. Pure."""
