"""What the page shows of a file: scans, planes, points, panels, live orbits."""
