"""Samples of Bayesian posteriors: order parameters, or all weights."""
