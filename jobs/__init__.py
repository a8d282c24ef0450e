"""What people launch, and what it needs; never installed. This file keeps other ``jobs`` from its place."""
