"""Lyapunov exponents: how fast neighbouring orbits part, and along which vectors."""
