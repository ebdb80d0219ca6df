"""Bayesian learning in deep multi-head attention: kernels of attention paths."""
