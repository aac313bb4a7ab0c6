"""Masks: images whose pixel values are class numbers."""
