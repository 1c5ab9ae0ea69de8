//! ssh's configuration: a file of our own, and one `Include` of it in the user's file.

use std::path::Path;

use crate::name::DOMAIN;
use crate::ssh::client::Client;
use crate::text::{Line, Style};

/// The content of devctl's own file.
pub fn stanza(client: &Client) -> String {
    let head = format!(
        "# Workspaces, by devctl config-ssh. devctl writes this file; put your own settings into the\n\
         # file that includes it.\nHost *{DOMAIN}"
    );
    let lines = client.lines().into_iter();
    let lines = lines.map(|line| format!("  {line}"));
    std::iter::once(head)
        .chain(lines)
        .collect::<Vec<_>>()
        .join("\n")
        + "\n"
}

/// The user's file with the `Include` as its first line; none if it is there already. The first
/// value of a setting counts (`ssh_config(5)`), so the line stands above everything else. A file with
/// Windows' line ends keeps them.
pub fn included(content: &str, file: &Path) -> Option<String> {
    let include = format!("Include \"{}\"", file.display());
    let is_setting = |line: &&str| !line.is_empty() && !line.starts_with('#');
    let mut lines = content.lines().map(str::trim).filter(is_setting);
    let is_block = |line: &&str| {
        let word = line.split([' ', '\t', '=']).next().unwrap_or_default();
        word.eq_ignore_ascii_case("Host") || word.eq_ignore_ascii_case("Match")
    };
    if lines
        .by_ref()
        .take_while(|line| !is_block(line))
        .any(|line| line == include)
    {
        return None;
    }
    let end = if content.contains("\r\n") {
        "\r\n"
    } else {
        "\n"
    };
    Some(format!("{include}{end}{content}"))
}

/// The user's file without the `Include`; none if it has none.
pub fn excluded(content: &str, file: &Path) -> Option<String> {
    let include = format!("Include \"{}\"", file.display());
    let is_ours = |line: &&str| line.trim() == include;
    let rest: String = content
        .split_inclusive('\n')
        .filter(|line| !is_ours(line))
        .collect();
    (rest.len() != content.len()).then_some(rest)
}

/// The lines that a file loses and gains.
pub fn difference(path: &Path, before: &str, after: &str) -> Vec<Line> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old[same..].iter().rev().zip(new[same..].iter().rev());
    let tail = rest.take_while(|(a, b)| a == b).count();
    let head = Line::new().with(Style::Bold, path.display().to_string());
    let lost = old[same..old.len() - tail].iter();
    let lost = lost.map(|line| Line::new().with(Style::Bad, format!("- {line}")));
    let gained = new[same..new.len() - tail].iter();
    let gained = gained.map(|line| Line::new().with(Style::Good, format!("+ {line}")));
    std::iter::once(head).chain(lost).chain(gained).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> &'static Path {
        Path::new("/home/alice b/.config/devctl/ssh_config")
    }

    const INCLUDE: &str = "Include \"/home/alice b/.config/devctl/ssh_config\"";

    #[test]
    fn the_include_stands_above_somebody_elses_settings_and_is_added_once() {
        for before in [
            "",
            "User bob\nHost *\n  ForwardAgent yes\n",
            "Match host x exec \"true\"\n  User y\n",
            "# mine",
        ] {
            let after = included(before, file()).unwrap();
            assert_eq!(after, format!("{INCLUDE}\n{before}"));
            assert_eq!(included(&after, file()), None);
            assert_eq!(excluded(&after, file()).unwrap(), before);
        }
    }

    #[test]
    fn an_include_inside_of_a_block_does_not_count() {
        let before = format!("Host other\n  {INCLUDE}\n");
        assert!(included(&before, file()).is_some());
    }

    #[test]
    fn a_file_with_windows_line_ends_keeps_them() {
        let before = "Host a\r\n  User b\r\n";
        let after = included(before, file()).unwrap();
        assert_eq!(after, format!("{INCLUDE}\r\n{before}"));
        assert_eq!(included(&after, file()), None);
        assert_eq!(excluded(&after, file()).unwrap(), before);
    }

    #[test]
    fn the_difference_shows_what_is_added() {
        let lines = difference(Path::new("/f"), "a\nb\nc\n", "a\nx\nb\nc\n");
        let text: Vec<_> = lines.iter().map(Line::text).collect();
        assert_eq!(text, ["/f", "+ x"]);
        let lines = difference(Path::new("/f"), "a\nb\n", "a\nc\n");
        let text: Vec<_> = lines.iter().map(Line::text).collect();
        assert_eq!(text, ["/f", "- b", "+ c"]);
    }
}
