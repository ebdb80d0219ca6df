"""What is computed at every value of a parameter: basins, sweeps, trajectories."""
