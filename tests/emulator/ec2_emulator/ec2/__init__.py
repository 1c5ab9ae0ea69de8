"""The EC2 operations that moto does not have right, one room for each concern."""
