"""The formats of annotated images, one in each module; `sources.formats` has their names."""
