"""What the page shows of a file: scans, planes, points, figures, live orbits."""
