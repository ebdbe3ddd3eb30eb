"""The tracker's HTTP API, its event stream and its page."""
