"""Records -> records in other shards: whole frames are copied, with the checksums they had."""
