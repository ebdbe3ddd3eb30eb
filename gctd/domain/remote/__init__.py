"""A remote repository as the user names it: its address, the hosts that git may reach, and names inside it."""
