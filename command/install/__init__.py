"""The Kubernetes objects that AlterShield installs: CustomResourceDefinitions, RBAC, webhook configurations and
admission policies. Also finds them again in a cluster."""
