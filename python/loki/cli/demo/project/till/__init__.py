"""A small shop's till: prices, baskets, receipts."""
