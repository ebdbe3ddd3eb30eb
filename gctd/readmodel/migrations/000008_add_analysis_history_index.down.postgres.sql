DROP INDEX analyses_by_project;
