"""Where chunks are computed; the numbers do not depend on it."""
