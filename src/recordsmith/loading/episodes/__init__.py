"""Windows of steps as records: which there are, where their steps are, and how they are read."""
