"""An analysis in the forms that other programs and people take: badge, CSV, SARIF, Markdown."""
