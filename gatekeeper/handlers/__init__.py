"""The admission handlers, one folder for each feature. `altershield/admission/registry.py` says when each is asked."""
