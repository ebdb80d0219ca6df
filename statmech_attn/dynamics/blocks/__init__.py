"""Transformer blocks as maps of their tokens, or layer after layer."""
