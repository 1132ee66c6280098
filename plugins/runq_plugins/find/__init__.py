"""Where the servers of the built-in reset backends usually are, and what they offer."""
