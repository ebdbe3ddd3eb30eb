DROP INDEX analyses_by_commit;
DROP INDEX analyses_by_analysis_id;
ALTER TABLE analyses DROP COLUMN analysis_id;
