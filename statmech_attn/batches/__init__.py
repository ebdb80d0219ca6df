"""How numbers are computed many at once: lanes, programs, memory, double precision."""
