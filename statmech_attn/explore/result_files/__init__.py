"""Result files as the explorer holds them: opened once, watched, in pieces."""
