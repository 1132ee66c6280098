"""Run the evaluation of local models through the night."""
