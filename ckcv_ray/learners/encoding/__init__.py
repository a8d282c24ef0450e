"""How tables with categories, dates or gaps become numbers: an encoder is fitted in every split."""
