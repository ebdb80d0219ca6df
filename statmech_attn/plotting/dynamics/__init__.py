"""Pictures of maps and flows: diagrams, phases, exponents, basins, continuation."""
