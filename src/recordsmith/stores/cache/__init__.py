"""A store that keeps what it reads over a network in a local folder."""
