"""Branches and critical curves that grow from one another, as one file."""
