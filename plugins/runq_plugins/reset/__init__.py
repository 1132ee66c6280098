"""Reset backends: what evicts the models an endpoint holds, and proves it."""
