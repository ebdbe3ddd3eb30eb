CREATE UNIQUE INDEX repos_by_url ON repos (url);
