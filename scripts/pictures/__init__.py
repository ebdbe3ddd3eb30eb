"""Pictures of pages and diagrams, drawn by Chromium."""
