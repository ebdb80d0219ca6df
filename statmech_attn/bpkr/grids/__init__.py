"""Learning problems over widths, temperatures and numbers of examples."""
