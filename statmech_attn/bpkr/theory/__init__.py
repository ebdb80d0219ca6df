"""What the theory says of a problem: action, saddle point, exact law, predictions."""
