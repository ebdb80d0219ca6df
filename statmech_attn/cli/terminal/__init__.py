"""The terminal: what is printed on it, progress, errors, shared options."""
