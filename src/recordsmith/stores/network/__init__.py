"""Stores behind a network: buckets, web servers, and the file systems of fsspec.

They need the extra `remote`. Each request is retried and has a deadline; an object that is replaced
while it is read is noticed by its ETag.
"""
