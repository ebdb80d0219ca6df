"""The second look of a scan: longer orbits where a verdict is in doubt."""
