"""Pixels from image files, within a memory limit."""
