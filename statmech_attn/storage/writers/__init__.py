"""Writing whole files or none: data sets, blocks, tables."""
