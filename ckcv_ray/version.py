"""The version of the package, written into every run folder."""

VERSION = "0.1.0"
