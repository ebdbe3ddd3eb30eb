"""Schema and request in, result out. Nothing here knows how a query came or where the result goes; it is what is deployed."""
