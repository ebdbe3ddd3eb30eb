"""A service's HTTP API seen from outside: what the clients of all services, and with them their command lines, have in common.

`errors` is what a client raises, each with the exit code of a command; `transport` makes requests, `feed` follows an event
stream, `resources` are answers as values, `service` is what the client of one service builds on. Nothing is imported here: some
of them need aiohttp, the others start faster.
"""
