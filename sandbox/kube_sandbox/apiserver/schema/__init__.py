"""Types, fields, defaults and schemas of objects."""
