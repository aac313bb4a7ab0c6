"""Verifies shards: their bytes, records and contents, and the files that describe them."""
