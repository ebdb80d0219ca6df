"""What kind of motion an orbit is: phases, tests for chaos, rotation numbers."""
