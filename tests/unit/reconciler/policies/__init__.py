"""Tests of DefensePolicies: their acceptance and selection."""
