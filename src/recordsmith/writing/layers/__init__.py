"""Values of tables for the records of a dataset, found by a key."""
