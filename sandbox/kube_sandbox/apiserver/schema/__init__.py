"""The types, fields, defaults and schemas of objects."""
