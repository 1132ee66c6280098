"""The morning page: one night in one HTML file, or its table in Markdown or CSV."""
