"""EC2 as AWS documents it, for tests and demonstrations: moto plus what moto lacks."""
