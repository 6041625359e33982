"""The reconciler: controllers that verify releases, suspend failed ones and roll back releases whose pods do not come
up."""
