CREATE INDEX entries_by_time ON entries (at);
