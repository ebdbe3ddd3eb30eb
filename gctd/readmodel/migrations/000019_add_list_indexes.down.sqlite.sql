DROP INDEX tasks_by_status;
DROP INDEX analyses_by_url;
