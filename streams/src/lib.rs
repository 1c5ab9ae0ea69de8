//! Standard input and output, joined with a connection: what ssh's `ProxyCommand` does.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// The bytes that are copied at once: what a pipe holds (pipe(7)).
const BUFFER: usize = 64 * 1024;

/// The bytes of a connection that has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes from standard input.
    pub up: u64,
    /// Bytes to standard output.
    pub down: u64,
}

/// Copies in both directions until the connection's side ends.
pub fn join(stream: &TcpStream) -> io::Result<Carried> {
    // Rust's own standard streams have buffers, which would keep bytes back.
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut to = stream.try_clone()?;
    let up = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&up);
    thread::spawn(move || {
        // ssh closes the pipe when it ends, in any way.
        let _ = copy(&mut stdin, &mut to, |bytes| {
            counted.fetch_add(bytes, Ordering::Relaxed);
        });
        let _ = to.shutdown(Shutdown::Write);
    });
    let mut from = stream;
    let mut down = 0;
    copy(&mut from, &mut stdout, |bytes| down += bytes)?;
    Ok(Carried {
        up: up.load(Ordering::Relaxed),
        down,
    })
}

/// Copies until the end. `io::copy` would use splice(2), which holds the lock of the pipe while it
/// waits for the socket: then ssh cannot read what is in the pipe.
fn copy(from: &mut impl Read, to: &mut impl Write, mut copied: impl FnMut(u64)) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                to.write_all(&buffer[..count])?;
                copied(count as u64);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
