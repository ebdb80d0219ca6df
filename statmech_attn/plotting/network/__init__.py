"""Pictures of attention networks with their spins: theory beside simulation."""
