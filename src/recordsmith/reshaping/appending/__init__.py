"""`append`: add records to a dataset."""
