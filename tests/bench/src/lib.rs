//! The part of the benchmark that its client and the bare transport share.

pub mod encoded;
