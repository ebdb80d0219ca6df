"""Where orbits end: attractors, their basins and borders, lifetimes of transients."""
