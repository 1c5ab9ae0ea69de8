//! Randomness of the kernel.

use std::fs::File;
use std::io::{self, Read};

/// Random bytes.
pub(super) fn bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}
