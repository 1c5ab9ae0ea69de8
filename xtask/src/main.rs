//! Development commands: code generation, the local cluster, packages.

fn main() {}
