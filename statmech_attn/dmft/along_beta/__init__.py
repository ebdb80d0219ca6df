"""What is computed of a network at every beta: trajectories."""
