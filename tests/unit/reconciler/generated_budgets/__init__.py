"""Tests of the budgets that annotations ask for."""
