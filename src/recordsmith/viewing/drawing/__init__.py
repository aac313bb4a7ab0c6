"""Draw datasets, batches and reports as images and HTML pages.

Modules are imported one by one: pages of reports need much that scenes do not.
"""
