"""What commands print: tables and summaries of files, runs and presets."""
