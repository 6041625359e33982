"""Notifications: messages to people and their tools about suspensions, rollbacks, batches that wait for a person, and
ungated releases. They are sent by tasks of their own, so a slow receiver delays no decision."""
