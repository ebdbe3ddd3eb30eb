"""Administration of a server: declared streams, changes that apply them, backups."""
