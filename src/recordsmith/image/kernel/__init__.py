"""Compiled functions on the bytes of JPEG files."""
