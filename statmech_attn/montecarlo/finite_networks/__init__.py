"""Networks of N spins, simulated exactly, over a grid of N and parameters."""
