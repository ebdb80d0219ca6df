"""Image files of their publishers, read, checked and fetched."""
