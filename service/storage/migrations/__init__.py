"""The database's history: one file per step, applied in order by `assay migrate`."""
