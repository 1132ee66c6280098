"""Notifications: what is worth one, where it goes, and how it is sent without ever disturbing the night."""
