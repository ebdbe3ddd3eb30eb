"""The write side: requests of users as commands on aggregates, one by one and as whole files."""
