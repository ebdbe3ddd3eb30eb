DROP INDEX analyses_by_commit;
