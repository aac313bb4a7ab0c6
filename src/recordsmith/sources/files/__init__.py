"""Find, list and read the files of a source."""
