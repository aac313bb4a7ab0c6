"""A store that keeps what it reads over a network in a local folder.

`store` rounds misses out to pages and reads them in one round, `block_cache` writes them in a
thread. `local.block_files` has a file for each 8 MiB of an object, and a checksum for each page.
"""
