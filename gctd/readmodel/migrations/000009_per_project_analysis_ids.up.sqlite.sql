ALTER TABLE analyses ADD COLUMN analysis_id TEXT NOT NULL DEFAULT '';
CREATE INDEX analyses_by_analysis_id ON analyses (analysis_id, measured DESC, sequence DESC);
CREATE INDEX analyses_by_commit ON analyses (analysis_id, commit_sha, sequence);
