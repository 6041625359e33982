"""An AlterShield server in memory, for tests of its clients: the open API of AlterShield 1.0 with scripted checks.

It follows the published server, including the behaviour that surprises clients: a poll says `fail` while a check runs,
a callback is sent at most once, each batch start creates a new node, an expired check is reported as passed.
`server.AlterShieldServer` is the class; `script.Script` says how checks end and which faults occur.
"""
