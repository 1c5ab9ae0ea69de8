//! Files that cloud-init writes, as items of a YAML list.

use serde::Serialize;

/// A file of the instance.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct File<'a> {
    path: &'static str,
    permissions: &'static str,
    content: &'a str,
}

impl<'a> File<'a> {
    /// A file. `permissions` are four octal digits.
    pub fn new(path: &'static str, permissions: &'static str, content: &'a str) -> Self {
        Self {
            path,
            permissions,
            content,
        }
    }

    /// The item of the list. The serializer would take a twentieth of the time of a call, so plain
    /// text is written without it, in the serializer's own format.
    ///
    /// # Errors
    ///
    /// The serializer refuses the content.
    pub fn item(&self) -> Result<String, serde_yaml::Error> {
        let Self {
            path,
            permissions,
            content,
        } = self;
        if !is_plain(content) {
            return serde_yaml::to_string(&[self]);
        }
        let content = content.trim_end_matches('\n').replace('\n', "\n    ");
        Ok(format!(
            "- path: {path}\n  permissions: '{permissions}'\n  content: |\n    {content}\n"
        ))
    }
}

/// Whether YAML's literal style needs no indicator and no escape: the text ends with a newline, and
/// every line has printable ASCII characters, with spaces between others only.
fn is_plain(text: &str) -> bool {
    text.strip_suffix('\n').is_some_and(|lines| {
        lines.split('\n').all(|line| {
            let bytes = line.as_bytes();
            let ends = [bytes.first(), bytes.last()];
            ends.iter().all(|end| end.is_some_and(u8::is_ascii_graphic))
                && bytes.iter().all(|b| matches!(b, b' '..=b'~'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Characters that YAML treats in special ways, and others.
    const CHARACTERS: [&str; 24] = [
        "a", "Z", "0", " ", " ", "\n", "\n", "\t", ":", "#", "-", "'", "\"", "{", "|", "%", "&",
        "~", "\\", "=", "ä", "\u{feff}", "\u{85}", "\u{1}",
    ];

    #[test]
    fn a_file_is_written_as_the_serializer_writes_it() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut plain = 0;
        for n in 0..5000 {
            // Half of the texts have no characters that are never plain.
            let characters = if n % 2 == 0 { 24 } else { 20 };
            let length = random.usize(0..12);
            let mut content: String = (0..length)
                .map(|_| CHARACTERS[random.usize(0..characters)])
                .collect();
            if random.bool() {
                content.push('\n');
            }
            plain += usize::from(is_plain(&content));
            let file = File::new("/etc/gpu-workspace/some", "0644", &content);
            let serialized = serde_yaml::to_string(&[file]).unwrap();
            assert_eq!(file.item().unwrap(), serialized, "{content:?}");
        }
        assert!(plain > 300, "only {plain} texts are plain");
    }
}
