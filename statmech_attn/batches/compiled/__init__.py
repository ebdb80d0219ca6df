"""Compiled programs: which compiler, which are kept, how many were made."""
