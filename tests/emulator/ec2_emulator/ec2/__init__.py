"""The EC2 operations that moto does not implement as EC2. Each topic has a module."""
