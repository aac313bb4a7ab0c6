"""TensorFlow Datasets folders: their documents, and their records in both directions."""
