"""`runq compare`: what changed between two nights or two models, and whether it is beyond chance."""
