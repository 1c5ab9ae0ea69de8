//! The progress of long work, as people see it.
//!
//! On a terminal, each running step has a line at the end of the screen, which shows how long the
//! step has run. Elsewhere, a line for each running step is printed after 30 seconds without
//! output. Both print one line, with the duration, when a step ends.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// The interval between two redraws of a terminal.
const FRAME: Duration = Duration::from_millis(500);
/// The longest time without output elsewhere.
const SILENCE: Duration = Duration::from_secs(30);
/// When a long step gets its first line. A step with nothing to do has ended by then.
const ANNOUNCED: Duration = Duration::from_secs(2);
/// The column where outcomes begin.
const TITLE: usize = 44;

/// Prints progress. Clones print to the same place, also from other threads.
#[derive(Clone)]
pub struct Progress {
    shared: Arc<Mutex<Shared>>,
}

/// A running step. A step that is dropped before its end is printed as "failed".
pub struct Step {
    progress: Progress,
    number: u64,
    began: Instant,
    ended: bool,
}

/// Describes how far a step is.
type Measure = Box<dyn Fn() -> Option<String> + Send>;

struct Shared {
    out: Out,
    running: Vec<Running>,
    begun: u64,
    last_line: Instant,
}

enum Out {
    Terminal(MultiProgress),
    Lines(Box<dyn Write + Send>),
}

struct Running {
    number: u64,
    title: String,
    began: Instant,
    expected: Option<Duration>,
    measure: Option<Measure>,
    /// Whether a line about it was printed; not used on a terminal.
    announced: bool,
    /// Its line on a terminal.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Prints to standard error, because standard output is for results.
    pub fn to_stderr() -> Self {
        if std::io::stderr().is_terminal() {
            Self::with(Out::Terminal(MultiProgress::new()))
        } else {
            Self::to(Box::new(std::io::stderr()))
        }
    }

    /// Prints lines to `out`.
    pub fn to(out: Box<dyn Write + Send>) -> Self {
        Self::with(Out::Lines(out))
    }

    fn with(out: Out) -> Self {
        let shared = Arc::new(Mutex::new(Shared {
            out,
            running: Vec::new(),
            begun: 0,
            last_line: Instant::now(),
        }));
        let watched = Arc::downgrade(&shared);
        thread::spawn(move || draw(&watched));
        Self { shared }
    }

    /// Prints a line that belongs to no step.
    pub fn note(&self, text: &str) {
        self.lock().line(text);
    }

    /// Begins a step.
    pub fn begin(&self, title: &str) -> Step {
        let mut shared = self.lock();
        shared.begun += 1;
        let (number, began) = (shared.begun, Instant::now());
        let bar = shared.bar();
        shared.running.push(Running {
            number,
            title: title.to_owned(),
            began,
            expected: None,
            measure: None,
            announced: false,
            bar,
        });
        shared.draw(began);
        Step {
            progress: self.clone(),
            number,
            began,
            ended: false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Step {
    /// Shows how long the step usually takes.
    pub fn expect(&self, usual: Duration) {
        let mut shared = self.progress.lock();
        if let Some(running) = shared.find(self.number) {
            running.expected = Some(usual);
        }
    }

    /// Shows the answer of `measure`, how far the step is, whenever a line about the step is
    /// printed.
    pub fn follow(&self, measure: impl Fn() -> Option<String> + Send + 'static) {
        if let Some(running) = self.progress.lock().find(self.number) {
            running.measure = Some(Box::new(measure));
        }
    }

    /// How long the step has run.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Prints a line while the step runs.
    pub fn note(&self, text: &str) {
        self.progress.note(text);
    }

    /// Ends the step successfully.
    pub fn end(mut self, outcome: &str) {
        self.finish(outcome);
    }

    fn finish(&mut self, outcome: &str) {
        self.ended = true;
        let took = self.elapsed().as_secs_f64();
        let mut shared = self.progress.lock();
        let Some(at) = shared
            .running
            .iter()
            .position(|one| one.number == self.number)
        else {
            return;
        };
        let running = shared.running.remove(at);
        if let Some(bar) = running.bar {
            bar.finish_and_clear();
        }
        shared.line(&format!(
            "{:<TITLE$}{outcome:<8}{took:>7.1} s",
            running.title
        ));
    }
}

impl Drop for Step {
    fn drop(&mut self) {
        if !self.ended {
            self.finish("failed");
        }
    }
}

impl Shared {
    fn find(&mut self, number: u64) -> Option<&mut Running> {
        self.running.iter_mut().find(|one| one.number == number)
    }

    fn bar(&self) -> Option<ProgressBar> {
        let Out::Terminal(all) = &self.out else {
            return None;
        };
        let style = ProgressStyle::with_template("{wide_msg}").ok()?;
        Some(all.add(ProgressBar::new_spinner().with_style(style)))
    }

    fn line(&mut self, text: &str) {
        // An error is ignored: the work must go on if the terminal is closed.
        match &mut self.out {
            Out::Terminal(all) => {
                let _ = all.println(text);
            }
            Out::Lines(out) => {
                let _ = writeln!(out, "{text}");
                let _ = out.flush();
            }
        }
        self.last_line = Instant::now();
    }

    /// Prints the state of the running steps at time `now`.
    fn draw(&mut self, now: Instant) {
        for running in &self.running {
            if let Some(bar) = &running.bar {
                bar.set_message(running.describe(now));
                bar.tick();
            }
        }
        if matches!(self.out, Out::Lines(_)) {
            self.draw_lines(now);
        }
    }

    fn draw_lines(&mut self, now: Instant) {
        let is_silent = now.saturating_duration_since(self.last_line) >= SILENCE;
        let mut lines = Vec::new();
        for running in &mut self.running {
            if is_silent || running.is_to_announce(now) {
                running.announced = true;
                lines.push(running.describe(now));
            }
        }
        if !lines.is_empty() {
            self.line(&lines.join("\n"));
            self.last_line = now;
        }
    }
}

impl Running {
    /// Whether the step gets its first line now: it is expected to take long, and no line about it
    /// was printed yet.
    fn is_to_announce(&self, now: Instant) -> bool {
        let takes_long = self.expected.is_some_and(|usual| usual >= SILENCE);
        let so_far = now.saturating_duration_since(self.began);
        !self.announced && takes_long && so_far >= ANNOUNCED
    }

    fn describe(&self, now: Instant) -> String {
        let so_far = clock(now.saturating_duration_since(self.began));
        let mut text = format!("{:<TITLE$}{so_far:>7}", self.title);
        if let Some(expected) = self.expected {
            let _ = write!(text, " of about {}", clock(expected));
        }
        if let Some(measured) = self.measure.as_ref().and_then(|measure| measure()) {
            let _ = write!(text, ", {measured}");
        }
        text
    }
}

/// Draws until the last `Progress` and the last `Step` are dropped.
fn draw(watched: &Weak<Mutex<Shared>>) {
    while let Some(shared) = watched.upgrade() {
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.draw(Instant::now());
        drop(shared);
        thread::sleep(FRAME);
    }
}

/// Minutes and seconds, such as `1:05`.
fn clock(duration: Duration) -> String {
    let seconds = duration.as_secs();
    format!("{}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
#[path = "progress_tests.rs"]
mod tests;
