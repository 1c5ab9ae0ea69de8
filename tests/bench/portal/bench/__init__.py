"""`make bench-portal`: the portal beside an Express backend with the same three endpoints, on the same API
server, in the same run. `bars` says what is promised."""
