"""The built-in plugins; found through entry points exactly like anyone else's."""
