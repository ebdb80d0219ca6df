"""Study files, their results, and the code that they name."""
