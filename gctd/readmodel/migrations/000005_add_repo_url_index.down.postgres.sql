DROP INDEX repos_by_url;
