"""The tracker's HTTP API for clients: for the command line, and for Python programs.

`gctd.client.api` makes requests and follows the event stream, `gctd.client.resources` and `gctd.client.projects` are the values
that it returns, `terminalkit.client` has the errors that it raises. This module has no imports: the first needs aiohttp,
and the others start faster.
"""
