//! Why there is no preview.

use std::io;

use thiserror::Error;

/// Why there is no preview.
#[derive(Debug, Error)]
pub enum Error {
    /// The file with the policy cannot be used.
    #[error("{0}")]
    Proposal(String),
    /// The cluster or the dump cannot be read.
    #[error("{0}")]
    Source(String),
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    File {
        /// The path of the file.
        path: String,
        /// The error.
        error: io::Error,
    },
}
