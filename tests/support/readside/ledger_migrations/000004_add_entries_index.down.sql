DROP INDEX entries_by_time;
