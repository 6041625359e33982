"""A simulated API of a cluster with the largest size that AlterShield is built for. It supports lists and watches. All
releases have ended.

Objects are as large as real ones: managedFields, 1 KB of annotations, a pod template with twenty environment variables.
Streamed lists are created in advance. They take some GB of memory.
"""
