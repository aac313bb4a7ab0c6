"""Finds the shards of paths: with a manifest and its layers, or without one."""
