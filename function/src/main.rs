//! Composition function: a workspace claim becomes desired resources.

fn main() {}
