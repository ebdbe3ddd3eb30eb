"""Attempts: the course of a job, its reports, its log."""
