CREATE INDEX analyses_by_commit ON analyses (analysis_id, commit_sha, sequence);
