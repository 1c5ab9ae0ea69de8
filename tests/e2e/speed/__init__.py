"""How quick and small the programs are that owners run."""
