"""The pantry's HTTP API, seen from outside: what the command line uses, and what a program in Python may use.

`pantry.client.api` makes requests and follows the event stream, `pantry.client.resources` are the values that it gives,
`terminalkit.client.errors` is what it raises. Nothing is imported here: the first needs aiohttp, the others start faster.
"""
