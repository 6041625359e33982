"""The admission handlers, one package for each feature. `altershield/admission/registry.py` says which requests each
handler gets."""
