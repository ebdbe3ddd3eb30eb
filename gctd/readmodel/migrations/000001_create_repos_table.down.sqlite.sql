DROP TABLE repos;
