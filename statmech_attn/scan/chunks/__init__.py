"""Chunks of points: work, files, claims, folders, and the session that computes."""
