//! The result of the setup of a machine, as the setup script writes it.
//!
//! The owner of a machine can write any text, so that only known words and a plain step are read.

/// The text of a setup that has installed the software.
const DONE: &str = "done";
/// The beginning of the text of a failed setup. The step follows.
const FAILED: &str = "FAILED: ";
/// The most characters of a failed step.
const MOST: usize = 200;

/// How a setup ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetupResult {
    /// The software is installed.
    Done,
    /// A step failed. It is in printable ASCII and has at most 200 characters.
    Failed(String),
}

/// The result in a text: `done`, or `FAILED: ` and a step. None for another text.
pub fn read(text: &str) -> Option<SetupResult> {
    if text == DONE {
        return Some(SetupResult::Done);
    }
    let step: String = text.strip_prefix(FAILED)?.chars().take(MOST).collect();
    let is_plain = |c: char| c == ' ' || c.is_ascii_graphic();
    // A step is a text of the setup: the script never writes another character.
    let is_step = !step.is_empty() && step.chars().all(is_plain) && !step.contains(['<', '>', '&']);
    is_step.then_some(SetupResult::Failed(step))
}
