//! Workspaces on the spot market: a `SpotPool` of one instance each, kept by
//! this project's own provider.

pub mod finding;
pub mod home;
pub mod observed;
pub mod pool;

pub use finding::finding;
pub use observed::ObservedPool;
