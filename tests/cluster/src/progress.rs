//! What the user sees while something takes long: one line per step, with the
//! time it took.

use std::io::Write;
use std::time::{Duration, Instant};

/// Where progress lines go.
pub struct Progress {
    out: Box<dyn Write>,
    step_open: bool,
}

/// A step under way. A step that is dropped unfinished reads "failed".
pub struct Step<'a> {
    progress: &'a mut Progress,
    began: Instant,
    ended: bool,
}

impl Progress {
    /// Writes to standard error, which keeps standard output for results.
    pub fn to_stderr() -> Self {
        Self::to(Box::new(std::io::stderr()))
    }

    /// Writes to `out`.
    pub fn to(out: Box<dyn Write>) -> Self {
        Self {
            out,
            step_open: false,
        }
    }

    /// A line of its own.
    pub fn note(&mut self, text: &str) {
        let newline = if self.step_open { "\n" } else { "" };
        self.print(&format!("{newline}{text}\n"));
        self.step_open = false;
    }

    /// Begins a step: its title shows at once, its outcome when it ends.
    pub fn begin(&mut self, title: &str) -> Step<'_> {
        self.print(&format!("{title:<44}"));
        self.step_open = true;
        Step {
            progress: self,
            began: Instant::now(),
            ended: false,
        }
    }

    fn print(&mut self, text: &str) {
        // A closed terminal must not end the work that it watched.
        let _ = self.out.write_all(text.as_bytes());
        let _ = self.out.flush();
    }
}

impl Step<'_> {
    /// Ends the step well.
    pub fn end(mut self, outcome: &str) {
        self.finish(outcome);
    }

    /// A line of its own in the middle of the step.
    pub fn note(&mut self, text: &str) {
        self.progress.note(text);
    }

    fn finish(&mut self, outcome: &str) {
        self.ended = true;
        let line = format!("{outcome:<8}{}\n", seconds(self.began.elapsed()));
        self.progress.print(&line);
        self.progress.step_open = false;
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.finish("failed");
        }
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:>7.1} s", duration.as_secs_f64())
}
