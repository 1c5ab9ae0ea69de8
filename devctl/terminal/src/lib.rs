//! The user's terminal.

use std::io::{self, BufRead, IsTerminal, Write};
use std::sync::Mutex;

use console::Term;
use devctl_core::host::Terminal;
use devctl_core::output::{self, Format};
use devctl_core::problem::Problem;
use devctl_core::text::{Line, Style};
use indicatif::{ProgressBar, ProgressStyle};

pub mod programs;

/// Standard output and standard error.
pub struct Screen {
    /// Whether data has colours.
    is_coloured: bool,
    /// Whether notes have colours.
    are_notes_coloured: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What is going on, on a terminal.
    bar: Option<ProgressBar>,
    /// What was last said to be going on, elsewhere.
    told: Option<String>,
    /// How many lines are shown in place.
    shown: usize,
    /// What stays after an interruption.
    stays: Option<Line>,
}

impl Default for Screen {
    /// The terminal of this process.
    fn default() -> Self {
        let wants = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
            && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        Self {
            is_coloured: wants && io::stdout().is_terminal(),
            are_notes_coloured: wants && io::stderr().is_terminal(),
            state: Mutex::default(),
        }
    }
}

impl Screen {
    /// Reports a problem, and gives the exit code of a command that ends with it.
    pub fn report(&self, format: Format, problem: &Problem) -> u8 {
        self.settled();
        if format.is_json() {
            // Programs that cannot read it still have the exit code.
            let _ = self.document(&output::document(&problem.json(), Format::Json));
        }
        for line in problem.lines() {
            self.note(&line);
        }
        problem.exit()
    }

    /// Says what stays after Ctrl-C.
    pub fn interrupted(&self) {
        self.settled();
        let stays = self.state().stays.take();
        self.note(&stays.unwrap_or_else(|| Line::from("interrupted")));
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Terminal for Screen {
    fn data(&self, line: &Line) -> io::Result<()> {
        let mut out = io::stdout().lock();
        writeln!(out, "{}", rendered(line, self.is_coloured))?;
        out.flush()
    }

    fn document(&self, text: &str) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn note(&self, line: &Line) {
        let text = rendered(line, self.are_notes_coloured);
        match &self.state().bar {
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }

    fn progress(&self, line: &Line) {
        let mut state = self.state();
        if io::stderr().is_terminal() {
            let bar = state.bar.get_or_insert_with(|| {
                let bar = ProgressBar::new_spinner();
                let style = ProgressStyle::with_template("{spinner} {wide_msg}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                bar
            });
            bar.set_message(rendered(line, self.are_notes_coloured));
            bar.tick();
            return;
        }
        // The time is dim, and no news.
        let news: String = line
            .spans()
            .iter()
            .filter(|span| span.style() != Style::Dim)
            .map(devctl_core::text::Span::text)
            .collect();
        if state.told.as_ref() != Some(&news) {
            eprintln!("{}", rendered(line, false));
            state.told = Some(news);
        }
    }

    fn settled(&self) {
        let mut state = self.state();
        if let Some(bar) = state.bar.take() {
            bar.finish_and_clear();
        }
        state.told = None;
    }

    fn ask(&self, question: &Line) -> Option<String> {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return None;
        }
        eprint!("{}", rendered(question, self.are_notes_coloured));
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer).ok()?;
        (read > 0).then_some(answer)
    }

    fn screen(&self, lines: &[Line]) -> io::Result<()> {
        let mut state = self.state();
        let term = Term::stdout();
        term.clear_last_lines(state.shown)?;
        for line in lines {
            term.write_line(&rendered(line, self.is_coloured))?;
        }
        state.shown = lines.len();
        Ok(())
    }

    fn stays(&self, line: &Line) {
        self.state().stays = Some(line.clone());
    }

    fn width(&self) -> Option<u16> {
        if !io::stdout().is_terminal() {
            return None;
        }
        Some(
            Term::stdout()
                .size_checked()
                .map_or(80, |(_, columns)| columns),
        )
    }
}

/// The line with the terminal's codes for its styles ("SGR", ECMA-48).
fn rendered(line: &Line, is_coloured: bool) -> String {
    if !is_coloured {
        return line.text();
    }
    let rendered = line.spans().iter().map(|span| {
        let code = match span.style() {
            Style::Plain => return span.text().to_owned(),
            Style::Bold => "1",
            Style::Dim => "2",
            Style::Good => "32",
            Style::Warning => "33",
            Style::Bad => "31",
        };
        format!("\u{1b}[{code}m{}\u{1b}[0m", span.text())
    });
    rendered.collect()
}
