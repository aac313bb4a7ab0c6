"""Datasets of Hugging Face."""
