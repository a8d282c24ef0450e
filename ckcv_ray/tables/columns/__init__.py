"""How columns of cells are understood, and the numbers that they become."""
