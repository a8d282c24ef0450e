"""What may be claimed for a result, in numbers and in words."""
