"""Pictures of Bayesian and trained attention: accuracy, order parameters, heads."""
