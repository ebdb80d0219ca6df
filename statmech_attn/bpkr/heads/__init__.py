"""Which heads matter: scores, pruning, ablation, and how far they agree."""
