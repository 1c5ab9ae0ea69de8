//! A registry for tests.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A registry in a process of its own. Dropping it ends the process.
pub(super) struct Registry {
    process: Child,
    /// Its host and port.
    pub(super) address: String,
}

impl Registry {
    pub(super) fn serve(crane: &Path) -> Self {
        let mut process = Command::new(crane)
            .args(["registry", "serve", "--address", "127.0.0.1:0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let line = lines.find_map(|line| {
            let line = line.unwrap();
            let port = line.rsplit_once("serving on port ")?.1.to_owned();
            Some(port)
        });
        // The registry prints a line per request. A reader is necessary, or the registry would
        // block when the pipe is full.
        std::thread::spawn(move || lines.for_each(drop));
        let address = format!("127.0.0.1:{}", line.unwrap());
        Self { process, address }
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
