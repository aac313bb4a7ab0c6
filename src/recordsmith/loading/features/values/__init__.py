"""Features of numbers, text and bytes."""
