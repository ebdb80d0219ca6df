"""A learning problem as it is posed: prior, examples, kernels, and their algebra."""
