DROP INDEX tasks_by_repo;
