ALTER TABLE tasks DROP COLUMN attempts;
