"""Commands that a service's program gets from here."""
