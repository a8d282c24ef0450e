"""Scripts and their modules; never installed. This file keeps another package ``jobs`` from being imported."""
