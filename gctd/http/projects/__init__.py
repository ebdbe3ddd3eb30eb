"""Routes of projects: history, comparison, gate, badges, exports, settings, updates."""
