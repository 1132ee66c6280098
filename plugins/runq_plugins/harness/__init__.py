"""Harnesses: what turns an entry into steps, and reads what they left."""
