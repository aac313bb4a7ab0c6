"""Makes batches of records in threads: reading, decoding, the user's functions."""
