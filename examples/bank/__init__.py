"""A bank: accounts with deposits and transfers."""
