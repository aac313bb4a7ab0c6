"""Forecasts how large a dataset becomes, before packing it.

`stored_sample` stores a sample in each variant, `fidelity` compares pixels, and `forecast`
extrapolates sizes.
"""
