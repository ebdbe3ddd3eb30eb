ALTER TABLE analyses ADD COLUMN sources_digest TEXT;
ALTER TABLE analyses ADD COLUMN store_source TEXT NOT NULL DEFAULT '';
