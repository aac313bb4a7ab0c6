"""Tables, and rows from Python."""
