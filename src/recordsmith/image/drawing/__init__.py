"""Images for people: contact sheets, boxes, labels, demo flowers."""
