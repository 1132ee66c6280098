"""Probes: one memory figure each, in MB (2**20 bytes)."""
