"""CloneSets (OpenKruise)."""
