"""Watching a night that another process runs: `runq watch`.

following  what the journal tells of it, as it is written
frame      what one screen shows: values alone
screen     a frame as lines of any width and height
choosing   what keys ask for
keys       keys from a terminal
calling    questions to the runner, in threads of their own
loop       all of it together, until the night ends or somebody leaves
plain      the same where no screen can be drawn: a line for each transition
"""
