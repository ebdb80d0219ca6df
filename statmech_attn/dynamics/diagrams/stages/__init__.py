"""What a batch of points goes through: orbits, windows, verdicts, samples."""
