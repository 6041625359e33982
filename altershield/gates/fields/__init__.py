"""The fields of pod templates that FieldGuards name: their paths, their values, and how a release changes them. Pure
functions."""
