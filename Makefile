# `make demo` shows everything, `make test` proves everything. Both need Rust, Go,
# Python 3 and root; what else is missing is named, with the command that installs it.
.DELETE_ON_ERROR:
