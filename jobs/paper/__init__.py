"""What the paper and the claims say, tried: Table 1, the losses of a margin, how often bounds hold."""
