"""Data of one's own in a file of arrays: inputs, attention, labels, test sets."""
