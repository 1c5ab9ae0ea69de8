//! Crossplane provider that keeps spot GPU pools full.

fn main() {}
