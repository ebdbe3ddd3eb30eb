ALTER TABLE analyses ADD COLUMN analysis_id TEXT NOT NULL DEFAULT '';
CREATE INDEX analyses_by_analysis_id ON analyses (analysis_id, sequence DESC);
