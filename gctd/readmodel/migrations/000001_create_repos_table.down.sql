DROP TABLE tracked_refs;
DROP TABLE repos;
