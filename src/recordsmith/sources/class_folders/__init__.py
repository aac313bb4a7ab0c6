"""Images in class folders, or in any folders."""
