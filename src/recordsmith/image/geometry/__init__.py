"""Where pixels go: fit, crop, pad, flip, rotate, normalise."""
