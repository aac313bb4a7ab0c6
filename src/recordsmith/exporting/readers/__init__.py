"""Generates programs that read a dataset in TensorFlow or DALI."""
