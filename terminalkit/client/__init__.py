"""The common base of the clients of all services, and of their command lines.

`errors` has the errors of clients, each with the exit code of a command. `transport` makes requests, `feed` follows an event
stream, `resources` are answers as values, `service` is the base of a client of one service. This module does not import them:
some need aiohttp, the others start faster.
"""
