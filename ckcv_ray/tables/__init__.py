"""Tables of labelled rows: reading, checking and naming them."""
