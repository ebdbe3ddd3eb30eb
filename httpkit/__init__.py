"""The edge of the services: typed routes, errors, OpenAPI, event streams, hardening, configuration, logs, metrics, server."""
