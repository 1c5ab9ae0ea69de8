//! Ctrl-C: the code that waits gives up, and its caller cleans up before this process ends.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT};
use signal_hook::flag;

/// The exit status that a shell reports for a program that Ctrl-C ended.
pub const EXIT_CODE: u8 = 130;

static REQUESTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// From now on, Ctrl-C and the end of the terminal do not end this process. Instead [`requested`]
/// reports them. The kernel sends these signals to child processes, too. A second signal ends this
/// process, unless [`acknowledge`] was called in between.
pub fn listen() -> io::Result<()> {
    let requested = REQUESTED.get_or_init(Arc::default);
    for signal in [SIGINT, SIGHUP] {
        let again = Arc::clone(requested);
        flag::register_conditional_shutdown(signal, EXIT_CODE.into(), again)?;
        flag::register(signal, Arc::clone(requested))?;
    }
    Ok(())
}

/// Whether Ctrl-C or the end of the terminal asked this process to end.
pub fn requested() -> bool {
    REQUESTED
        .get()
        .is_some_and(|requested| requested.load(Ordering::Relaxed))
}

/// Marks the request as handled, so that waiting works again during the clean-up.
pub fn acknowledge() {
    if let Some(requested) = REQUESTED.get() {
        requested.store(false, Ordering::Relaxed);
    }
}
