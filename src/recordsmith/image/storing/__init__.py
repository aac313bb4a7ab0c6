"""Image files as datasets store them: original, re-encoded, resized, lossless."""
