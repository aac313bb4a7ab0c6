"""Conditions on the features of records, such as `label in (1, 2) and width > 100`."""
