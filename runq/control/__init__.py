"""Asking a running night for something: a local socket beside the journal's lock, and one JSON line each way.

address  where the socket is
wire     what goes over it
serving  the runner's end: a thread that hands every question to the night and gives its answer back
desk     between that thread and the night's own, which alone writes events
standing how a night stands, from its journal
asking   the other end: `runq pause` and its like
told     the answer in a sentence
"""
