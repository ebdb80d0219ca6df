"""The script for atheris is no module of tests: few environments have atheris."""

collect_ignore = ["coverage_guided.py"]
