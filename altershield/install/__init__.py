"""What AlterShield needs in a cluster, as Kubernetes objects: CRDs, RBAC, webhook configurations."""
