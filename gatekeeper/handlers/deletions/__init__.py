"""The handlers of deletions that depend on the content of the object. ValidatingAdmissionPolicies decide about all
other protected objects (`command/install/deletion_policies.py`)."""
