"""The Kubernetes objects that AlterShield needs: CRDs, RBAC objects and webhook configurations."""
