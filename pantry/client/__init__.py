"""The pantry's HTTP API for the command line, and for programs in Python.

`pantry.client.api` makes requests and follows the event stream, `pantry.client.resources` are the values that it returns,
`terminalkit.client.transport` are its errors. This module does not import them: the first needs aiohttp, the others start faster.
"""
