"""What anybody could have written on the public API: forms of reporting guidelines."""
