"""Image file formats: headers, structure and damage."""
