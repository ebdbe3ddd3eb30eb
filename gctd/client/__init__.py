"""The tracker's HTTP API, seen from outside: what the command line uses, and what a program in Python may use.

`gctd.client.api` makes requests and follows the event stream, `gctd.client.resources` and `gctd.client.projects` are the values
that it gives, `terminalkit.client.errors` is what it raises. Nothing is imported here: the first needs aiohttp, the others start
faster.
"""
