"""Schema and request in, result out. This package knows no transport; it is deployed alone."""
