"""Results handed to other packages, each of which is an extra and imported when it is used."""
