ALTER TABLE analyses DROP COLUMN store_source;
ALTER TABLE analyses DROP COLUMN sources_digest;
