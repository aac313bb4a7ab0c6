"""Files: the only place that calls the operating system for data."""
