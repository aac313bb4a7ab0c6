"""`reshard`: select, order and copy records to new shards."""
