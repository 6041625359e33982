"""The handlers of deletions: what the object alone does not tell. ValidatingAdmissionPolicies decide about all other
protected objects (`altershield/install/deletion_policies.py`)."""
