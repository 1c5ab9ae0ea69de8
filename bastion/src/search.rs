//! `gpu-bastion search`: lines of the audit log, as they are.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

/// Which lines of the audit log are searched for. Without options, all are.
#[derive(Args)]
pub(crate) struct Search {
    /// Name of a person
    #[arg(long)]
    user: Option<String>,
    /// Event, or its beginning: `command`, `connection.`
    #[arg(long)]
    event: Option<String>,
    /// Id of a session, or of a request (`auditID` in the API server's audit log)
    #[arg(long)]
    id: Option<String>,
    /// Name of a workspace
    #[arg(long)]
    workspace: Option<String>,
    /// Time of the first line: `2026-11-28T09:00:00Z`
    #[arg(long)]
    since: Option<Timestamp>,
    /// Time after the last line
    #[arg(long)]
    until: Option<Timestamp>,
    /// Files of the log, the oldest first
    #[arg(required = true)]
    files: Vec<PathBuf>,
}

/// Prints the lines. The exit code is 1 if there is none, as for grep (`grep(1)`).
pub(crate) fn run(search: &Search) -> ExitCode {
    match printed(search, &mut io::stdout().lock()) {
        Ok(0) => ExitCode::from(1),
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn printed(search: &Search, to: &mut impl Write) -> io::Result<usize> {
    let mut count = 0;
    for file in &search.files {
        let wrong = |why: String| io::Error::other(format!("{}: {why}", file.display()));
        let lines = BufReader::new(File::open(file).map_err(|error| wrong(error.to_string()))?);
        for (number, line) in lines.lines().enumerate() {
            let line = line?;
            let wrong = |why: &dyn std::fmt::Display| wrong(format!("line {}: {why}", number + 1));
            let record = serde_json::from_str(&line).map_err(|error| wrong(&error))?;
            if search.finds(&record).map_err(|error| wrong(&error))? {
                writeln!(to, "{line}")?;
                count += 1;
            }
        }
    }
    Ok(count)
}

impl Search {
    fn finds(&self, record: &Value) -> Result<bool, jiff::Error> {
        let text = |field: &str| record[field].as_str().unwrap_or_default();
        let is =
            |wanted: &Option<String>, is: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(is);
        let is_host_of = |name: &str| {
            let host: Result<devctl_core::name::Host, _> = text("workspace").parse();
            host.is_ok_and(|host| host.workspace.as_str() == name)
        };
        let time: Timestamp = text("time").parse()?;
        Ok(is(&self.user, &|name| text("user") == name)
            && is(&self.event, &|event| text("event").starts_with(event))
            && is(&self.id, &|id| {
                [text("session"), text("auditId")].contains(&id)
            })
            && is(&self.workspace, &is_host_of)
            && self.since.is_none_or(|since| time >= since)
            && self.until.is_none_or(|until| time < until))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        search: Search,
    }

    const LOG: &str = r#"{"time":"2026-11-28T09:00:00Z","session":"s1","user":"alice","event":"command","words":["list"]}
{"time":"2026-11-28T09:00:01Z","session":"s1","user":"alice","event":"api.request","auditId":"s1.1"}
{"time":"2026-11-28T09:00:02Z","session":"s2","user":"bob","event":"connection.opened","workspace":"0.work.ws"}
"#;

    fn found(name: &str, log: &str, options: &[&str]) -> io::Result<Vec<usize>> {
        let file = std::env::temp_dir().join(format!("bastion-{name}-{}", std::process::id()));
        std::fs::write(&file, log)?;
        let path = file.display().to_string();
        let words = ["search"]
            .iter()
            .chain(options)
            .copied()
            .chain([path.as_str()]);
        let mut output = Vec::new();
        let printed = printed(&Line::try_parse_from(words).unwrap().search, &mut output);
        std::fs::remove_file(&file)?;
        printed?;
        let output = String::from_utf8(output).unwrap();
        let number = |line: &str| log.lines().position(|one| one == line).unwrap() + 1;
        Ok(output.lines().map(number).collect())
    }

    #[test]
    fn a_person_a_request_and_a_workspace_are_found() {
        for (options, lines) in [
            (&[][..], vec![1, 2, 3]),
            (&["--user", "alice"], vec![1, 2]),
            (&["--user", "ali"], vec![]),
            (&["--event", "connection."], vec![3]),
            (&["--id", "s1"], vec![1, 2]),
            (&["--id", "s1.1"], vec![2]),
            (&["--workspace", "work"], vec![3]),
            (&["--workspace", "wor"], vec![]),
            (&["--since", "2026-11-28T09:00:01Z"], vec![2, 3]),
            (&["--until", "2026-11-28T09:00:01Z"], vec![1]),
        ] {
            assert_eq!(found("search", LOG, options).unwrap(), lines, "{options:?}");
        }
    }

    #[test]
    fn a_line_that_cannot_be_read_is_not_passed_over() {
        let cut = format!("{LOG}{{\"time\":");
        let error = found("search-cut", &cut, &["--user", "bob"]).unwrap_err();
        assert!(error.to_string().contains("line 4"), "{error}");
    }
}
