"""Curves on which a cycle is critical, and their codimension-two points."""
