"""Databases of read models: SQLite and Postgres."""
