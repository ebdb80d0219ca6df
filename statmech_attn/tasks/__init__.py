"""Learning tasks for the Bayesian theory of attention."""

from statmech_attn.tasks import hidden_markov, images, one_shot


__all__ = ["hidden_markov", "images", "one_shot"]
