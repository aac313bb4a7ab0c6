"""`salvage`: recover intact records from damaged shards."""
