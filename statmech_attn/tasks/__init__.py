"""Learning tasks for the Bayesian theory of attention."""

from statmech_attn.tasks import downloads, hidden_markov, images, one_shot


__all__ = ["downloads", "hidden_markov", "images", "one_shot"]
