"""Records in files: tar archives, TFRecord shards, arrays."""
