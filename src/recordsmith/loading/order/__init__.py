"""In which order, and by which rank and worker, the records of a dataset are read."""
