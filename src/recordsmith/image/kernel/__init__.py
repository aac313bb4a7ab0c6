"""Compiled loops over decoded pixels: colours and contrast, scaling and shifting."""
