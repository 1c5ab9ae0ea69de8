//! What the user sees while something takes long: one line per step, with the
//! time it took.

use std::io::Write;
use std::time::{Duration, Instant};

/// Where progress lines go.
pub struct Progress {
    out: Box<dyn Write>,
}

/// A step under way. A step that is dropped unfinished reads "failed".
pub struct Step<'a> {
    progress: &'a mut Progress,
    title: String,
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
        Self { out }
    }

    /// A line of its own.
    pub fn note(&mut self, text: &str) {
        self.print(&format!("{text}\n"));
    }

    /// Begins a step: its title shows at once, its outcome when it ends.
    pub fn begin(&mut self, title: &str) -> Step<'_> {
        let title = format!("{title:<44}");
        self.print(&title);
        Step {
            progress: self,
            title,
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
        let line = format!("\n{text}\n{}", self.title);
        self.progress.print(&line);
    }

    fn finish(&mut self, outcome: &str) {
        self.ended = true;
        let line = format!("{outcome:<8}{}\n", seconds(self.began.elapsed()));
        self.progress.print(&line);
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[derive(Clone, Default)]
    struct Paper(Rc<RefCell<Vec<u8>>>);

    impl Write for Paper {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn printed(work: impl FnOnce(&mut Progress)) -> String {
        let paper = Paper::default();
        work(&mut Progress::to(Box::new(paper.clone())));
        String::from_utf8(paper.0.take()).unwrap()
    }

    #[test]
    fn a_step_shows_its_title_before_it_ends_and_its_time_after() {
        let began = printed(|progress| std::mem::forget(progress.begin("binary etcd")));
        assert_eq!(began.trim_end(), "binary etcd");
        let ended = printed(|progress| progress.begin("binary etcd").end("built"));
        let words: Vec<_> = ended.split_whitespace().collect();
        assert_eq!(words, ["binary", "etcd", "built", "0.0", "s"]);
    }

    #[test]
    fn a_step_that_an_error_cuts_short_does_not_look_finished() {
        let text = printed(|progress| drop(progress.begin("images")));
        assert!(text.contains("failed"), "{text}");
    }

    #[test]
    fn a_note_in_a_step_leaves_the_outcome_beside_its_title() {
        let text = printed(|progress| {
            let mut step = progress.begin("binary etcd");
            step.note("waiting");
            step.end("cached");
        });
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[1], "waiting");
        assert!(
            lines[2].starts_with("binary etcd") && lines[2].contains("cached"),
            "{text}"
        );
    }
}
