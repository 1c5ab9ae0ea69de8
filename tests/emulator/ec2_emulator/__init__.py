"""Emulates EC2 as AWS documents it, for tests and demonstrations. It extends moto."""
