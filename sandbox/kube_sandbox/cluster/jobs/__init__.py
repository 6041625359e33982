"""Jobs: their pods, their ends, and their deletion afterwards."""
