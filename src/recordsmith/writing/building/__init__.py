"""Builds datasets from shards: locking, notes about completed shards, and publishing.

Shared by all jobs that write a dataset, whatever the source of the records.
"""
