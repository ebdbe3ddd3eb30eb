DROP INDEX tasks_alive;
