"""What every picture shares: style, axes, small print, and which file has which."""
