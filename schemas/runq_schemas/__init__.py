"""The types that runq, its journal and its plugins share: queue file, events, errors."""
