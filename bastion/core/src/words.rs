//! The words of a command line. They are split by a shell's rules for quotes, and never run: there are no
//! variables, no patterns, no pipes and no comments.

/// The longest command line in bytes.
pub const LONGEST: usize = 64 * 1024;

/// Why a command line has no words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// It is no text.
    NotText,
    /// A quote has no end.
    Unfinished,
    /// It has a character that controls a terminal.
    Control,
    /// It is too long.
    TooLong,
}

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::NotText => "it is no UTF-8",
            Self::Unfinished => "a quote or a backslash has no end",
            Self::Control => "it has a control character",
            Self::TooLong => "it is longer than 64 KiB",
        })
    }
}

/// Splits a command line into words (POSIX shell, "Quoting").
pub fn split(line: &[u8]) -> Result<Vec<String>, Malformed> {
    if line.len() > LONGEST {
        return Err(Malformed::TooLong);
    }
    let line = str::from_utf8(line).map_err(|_| Malformed::NotText)?;
    if line.chars().any(|c| c.is_control() && c != '\t') {
        return Err(Malformed::Control);
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    while let Some(c) = rest.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => single(&mut rest, word.get_or_insert_default())?,
            '"' => double(&mut rest, word.get_or_insert_default())?,
            '\\' => {
                let escaped = rest.next().ok_or(Malformed::Unfinished)?;
                word.get_or_insert_default().push(escaped);
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Reads up to the end of a single quote.
fn single(rest: &mut impl Iterator<Item = char>, word: &mut String) -> Result<(), Malformed> {
    for c in rest {
        if c == '\'' {
            return Ok(());
        }
        word.push(c);
    }
    Err(Malformed::Unfinished)
}

/// Reads up to the end of a double quote. A backslash escapes what a shell would expand.
fn double(rest: &mut impl Iterator<Item = char>, word: &mut String) -> Result<(), Malformed> {
    while let Some(c) = rest.next() {
        match c {
            '"' => return Ok(()),
            '\\' => {
                let escaped = rest.next().ok_or(Malformed::Unfinished)?;
                if !"\\\"$`".contains(escaped) {
                    word.push('\\');
                }
                word.push(escaped);
            }
            other => word.push(other),
        }
    }
    Err(Malformed::Unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_words_together() {
        for (line, expected) in [
            ("list", vec!["list"]),
            (
                "  create  my-dev\t--flavor t4 ",
                vec!["create", "my-dev", "--flavor", "t4"],
            ),
            (
                "run a 'b c' \"d e\" f\\ g",
                vec!["run", "a", "b c", "d e", "f g"],
            ),
            ("a'b'\"c\"d", vec!["abcd"]),
            ("'' \"\"", vec!["", ""]),
            (r#""a\"b\\c\$d\e""#, vec![r#"a"b\c$d\e"#]),
            ("", vec![]),
        ] {
            assert_eq!(split(line.as_bytes()).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn what_a_shell_would_run_is_a_word() {
        let line = "list; id $(id) `id` | sh > /x && $HOME * ~ #x {a,b}";
        assert_eq!(
            split(line.as_bytes()).unwrap(),
            line.split(' ').collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_line_that_cannot_be_read_is_refused() {
        for (line, why) in [
            ("a 'b", Malformed::Unfinished),
            ("a \"b", Malformed::Unfinished),
            ("a \\", Malformed::Unfinished),
            ("\"a\\", Malformed::Unfinished),
            ("a\nb", Malformed::Control),
            ("a\u{1b}[2J", Malformed::Control),
            ("a\u{9b}2J", Malformed::Control),
            ("a\0", Malformed::Control),
        ] {
            assert_eq!(split(line.as_bytes()), Err(why), "{line:?}");
        }
        assert_eq!(split(b"list \xff"), Err(Malformed::NotText));
        assert_eq!(split(&vec![b'a'; LONGEST + 1]), Err(Malformed::TooLong));
    }
}
