"""Finite N: linear noise, responses, fluctuations at bifurcations, irreversibility."""
