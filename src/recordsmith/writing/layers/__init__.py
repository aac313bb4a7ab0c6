"""Features of records in files of their own: rows of tables for records, layers of a dataset."""
