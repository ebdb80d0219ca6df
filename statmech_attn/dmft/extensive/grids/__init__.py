"""Networks with patterns growing with N, over a grid of parameters."""
