"""Attention of fixed heads, given or drawn, and networks with given weights."""
