"""The handlers of releases: each release gets a version, no release follows a failed one, and users do not change the
labels of AlterShield."""
