"""Scripts and their modules, never installed. This file keeps any other ``jobs`` from being imported."""
