//! Text for a terminal. No text that a user or a machine wrote can control the terminal.
//!
//! A [`Line`] replaces every control character when it is made, so an unescaped one cannot reach a
//! terminal.

use std::fmt::Write;

/// How a part of a line looks. A terminal without colours shows all of them alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// As the terminal shows text.
    Plain,
    /// A name or a heading.
    Bold,
    /// What is less important.
    Dim,
    /// What is as it should be.
    Good,
    /// What needs attention.
    Warning,
    /// What failed.
    Bad,
}

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    style: Style,
    text: String,
}

impl Span {
    /// How the part looks.
    pub fn style(&self) -> Style {
        self.style
    }

    /// The text. It has no control character.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// One line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    spans: Vec<Span>,
}

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// The line with more text at its end.
    #[must_use]
    pub fn with(mut self, style: Style, text: impl AsRef<str>) -> Self {
        let text = printable(text.as_ref());
        self.spans.push(Span { style, text });
        self
    }

    /// The line with more plain text at its end.
    #[must_use]
    pub fn plain(self, text: impl AsRef<str>) -> Self {
        self.with(Style::Plain, text)
    }

    /// The parts of the line.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The line without styles.
    pub fn text(&self) -> String {
        self.spans.iter().map(Span::text).collect()
    }
}

impl<T: AsRef<str>> From<T> for Line {
    fn from(text: T) -> Self {
        Self::new().plain(text)
    }
}

/// The text with every character replaced that could control a terminal, or that is not seen and
/// changes what is read: line ends and tabs become blanks, others their number, for example `\u{1b}`.
pub fn printable(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\t' | '\r' => safe.push(' '),
            other if is_unsafe(other) => {
                // Writing to a string cannot fail.
                let _ = write!(safe, "\\u{{{:x}}}", u32::from(other));
            }
            other => safe.push(other),
        }
    }
    safe
}

/// Whether a character controls a terminal or the order of text (Unicode's `Bidi_Control`, tags, and
/// separators of lines).
pub fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_message_controls_the_terminal() {
        let hostile = "a\u{1b}[2Jb\u{9b}31mc\u{7f}d\ne\u{202e}f\u{7}";
        let text = Line::from(hostile).text();
        assert_eq!(text, r"a\u{1b}[2Jb\u{9b}31mc\u{7f}d e\u{202e}f\u{7}");
        assert!(!text.chars().any(is_unsafe));
    }

    #[test]
    fn names_of_people_stay_as_they_are() {
        for name in ["Zoë", "李雷", "Ωmega 🚀", "a-b_c.d"] {
            assert_eq!(printable(name), name);
        }
    }
}
