"""One module per command; each calls one function of the core and prints its result."""
