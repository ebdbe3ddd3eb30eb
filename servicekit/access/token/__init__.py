"""The aggregate of a personal token: issued, used, revoked; the sessions that browsers opened with it, and codes for devices."""
