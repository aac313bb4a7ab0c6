"""Pack samples into shards: plan, write, verify, publish."""
