//! The output of a job: files of a bounded size, of which the last two stay.
//!
//! A file is named after the first byte that it has, `output.<offset>`. Both streams of the command
//! are one output, in the order in which the command writes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The size of a file of output.
pub(super) const SIZE: u64 = 64 * 1024 * 1024;
const PREFIX: &str = "output.";

/// Writes the output.
pub(super) struct Output {
    folder: PathBuf,
    size: u64,
    file: File,
    /// The first byte of the file.
    start: u64,
    length: u64,
    /// The bytes that could not be written.
    lost: u64,
}

impl Output {
    /// The output of a new job.
    pub(super) fn create(folder: &Path, size: u64) -> io::Result<Self> {
        Ok(Self {
            file: open(folder, 0)?,
            folder: folder.to_owned(),
            size,
            start: 0,
            length: 0,
            lost: 0,
        })
    }

    /// Writes what the command has written. A command must not wait for the disk, so bytes for which a
    /// full disk has no room are lost. A note in the file says how many, once there is room again.
    pub(super) fn write(&mut self, bytes: &[u8]) {
        if self.lost > 0 {
            let note = format!(
                "\n[{} bytes of output are lost: the disk was full]\n",
                self.lost
            );
            if self.append(note.as_bytes()).is_err() {
                self.lost += bytes.len() as u64;
                return;
            }
            self.lost = 0;
        }
        if self.append(bytes).is_err() {
            self.lost += bytes.len() as u64;
        }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.length >= self.size {
            let start = self.start + self.length;
            let file = open(&self.folder, start)?;
            for old in starts(&self.folder)?
                .into_iter()
                .filter(|old| *old < self.start)
            {
                fs::remove_file(path(&self.folder, old))?;
            }
            (self.file, self.start, self.length) = (file, start, 0);
        }
        let written = self.file.write_all(bytes);
        // A part may be written before the disk is full.
        self.length = self.file.stream_position()?;
        written
    }
}

/// Reads output from an offset on.
pub(super) struct Reader {
    folder: PathBuf,
    /// The next byte.
    at: u64,
}

/// Some output.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Part {
    /// The bytes that are not kept any more, before these.
    pub(super) left_out: u64,
    /// The bytes; none at the end of what is written so far.
    pub(super) bytes: Vec<u8>,
}

impl Reader {
    /// Reads from this byte on.
    pub(super) fn new(folder: &Path, at: u64) -> Self {
        Self {
            folder: folder.to_owned(),
            at,
        }
    }

    /// The next part of the output.
    pub(super) fn next(&mut self) -> io::Result<Part> {
        let starts = starts(&self.folder)?;
        let Some(first) = starts.first() else {
            return Ok(Part::default());
        };
        let left_out = first.saturating_sub(self.at);
        self.at = self.at.max(*first);
        let start = starts.iter().rev().find(|start| **start <= self.at);
        let start = *start.unwrap_or(first);
        let mut file = match File::open(path(&self.folder, start)) {
            Ok(file) => file,
            // The supervisor has just removed it. The next call finds the next one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Part::default()),
            Err(error) => return Err(error),
        };
        file.seek(SeekFrom::Start(self.at - start))?;
        let mut bytes = Vec::new();
        file.take(1024 * 1024).read_to_end(&mut bytes)?;
        self.at += bytes.len() as u64;
        Ok(Part { left_out, bytes })
    }
}

fn open(folder: &Path, start: u64) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path(folder, start))
}

fn path(folder: &Path, start: u64) -> PathBuf {
    folder.join(format!("{PREFIX}{start}"))
}

/// The offsets of the files, in order.
fn starts(folder: &Path) -> io::Result<Vec<u64>> {
    let mut starts = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let start = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        starts.extend(start.and_then(|start| start.parse::<u64>().ok()));
    }
    starts.sort_unstable();
    Ok(starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("agent-output-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn all(folder: &Path, from: u64) -> (u64, String) {
        let mut reader = Reader::new(folder, from);
        let (mut left_out, mut text) = (0, Vec::new());
        loop {
            let part = reader.next().unwrap();
            left_out += part.left_out;
            if part.bytes.is_empty() {
                return (left_out, String::from_utf8(text).unwrap());
            }
            text.extend(part.bytes);
        }
    }

    #[test]
    fn long_output_keeps_its_end_and_says_how_much_is_missing() {
        let folder = folder("long");
        let mut output = Output::create(&folder, 10).unwrap();
        for number in 0..10 {
            output.write(format!("line {number}\n").as_bytes());
        }
        // Each file has two lines; the last two files stay.
        let (left_out, text) = all(&folder, 0);
        assert_eq!(text, "line 6\nline 7\nline 8\nline 9\n");
        assert_eq!(left_out, 42);
        assert_eq!(all(&folder, 56), (0, "line 8\nline 9\n".to_owned()));
        assert_eq!(all(&folder, 70), (0, String::new()));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_reader_goes_on_where_it_stopped() {
        let folder = folder("on");
        let mut output = Output::create(&folder, 1_000).unwrap();
        let mut reader = Reader::new(&folder, 0);
        assert_eq!(reader.next().unwrap(), Part::default());
        output.write(b"a");
        assert_eq!(reader.next().unwrap().bytes, b"a");
        output.write(b"b");
        assert_eq!(reader.next().unwrap().bytes, b"b");
        fs::remove_dir_all(folder).unwrap();
    }
}
