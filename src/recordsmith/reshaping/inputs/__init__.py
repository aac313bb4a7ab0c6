"""The input shards of a job and their records."""
