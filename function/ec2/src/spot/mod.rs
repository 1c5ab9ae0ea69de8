//! Spot workspaces: each has a `SpotPool` with one instance, which this project's provider manages.

pub mod finding;
pub mod home;
pub mod observed;
pub mod pool;

pub use finding::finding;
pub use observed::ObservedPool;
