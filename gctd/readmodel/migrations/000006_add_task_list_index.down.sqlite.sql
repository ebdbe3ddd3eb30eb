DROP INDEX tasks_by_created_at;
