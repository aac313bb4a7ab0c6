"""Bytes to records to features and back: `wire` frames records, `example` reads and writes them."""
