"""The tracker's HTTP API, seen from outside: what the command line uses, and what a program in Python may use.

`gctd.client.api` makes requests, `gctd.client.feed` follows the event stream, `gctd.client.resources` are the values that both
give, `gctd.client.errors` is what both raise. Nothing is imported here: the first two need aiohttp, the others start faster.
"""
