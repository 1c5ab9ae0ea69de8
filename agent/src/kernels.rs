//! Busy Jupyter kernels, as Jupyter servers report them to clients with their token.
//!
//! Each server describes itself in a file of its user (`jupyter --runtime-dir`), which the agent
//! reads as root. A user could write anything into such a file. The agent therefore connects only
//! to addresses of this machine, and never passes on the content.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;

use crate::file;
use crate::http::{self, Trust};
use crate::log::{Log, Problem};
use crate::signs::Look;

/// The folder of these files below a home, unless `JUPYTER_RUNTIME_DIR` names another one.
const RUNTIME: &str = ".local/share/jupyter/runtime";
/// The prefixes of the files of Jupyter Server, and of Jupyter Notebook before version 7.
const PREFIXES: [&str; 2] = ["jpserver-", "nbserver-"];
const MOST: usize = 64;
const LONGEST: u64 = 64 * 1024;
const TIMEOUT: Duration = Duration::from_secs(3);

/// The description of a server (`jupyter_server.serverapp.ServerApp.server_info`).
#[derive(Deserialize)]
struct Server {
    #[serde(default)]
    hostname: String,
    port: u16,
    #[serde(default)]
    base_url: String,
    #[serde(default)]
    secure: bool,
    #[serde(default)]
    sock: String,
    #[serde(default)]
    token: String,
}

/// A kernel in a server's response to `GET /api/kernels`.
#[derive(Deserialize)]
struct Kernel {
    #[serde(default)]
    execution_state: Option<String>,
    #[serde(default)]
    last_activity: Option<Timestamp>,
}

/// The result of asking a server.
enum Answer {
    /// No process listens on the port: the file is left from a server that has ended.
    Gone,
    Kernels(Vec<Kernel>),
    Failure(Problem),
}

/// Asks the Jupyter servers of the users with these homes.
pub fn look(homes: &[PathBuf], log: &Log) -> Look {
    let mut answers = Vec::new();
    for home in homes {
        match files(&home.join(RUNTIME)) {
            Ok(files) => answers.extend(files.iter().map(|file| ask(file))),
            Err(error) => {
                let text = format!("{}: {error}", home.join(RUNTIME).display());
                answers.push(Answer::Failure(Problem::new("folder", text)));
            }
        }
    }
    let problem = answers.iter().find_map(|answer| match answer {
        Answer::Failure(problem) => Some(problem),
        _ => None,
    });
    match problem {
        Some(problem) => {
            log.problem("kernel", &problem.kind, &problem.text);
        }
        None => {
            log.fine("kernel");
        }
    }
    judge(&answers)
}

/// The use that the answers show. A busy kernel is use, even if another server fails.
fn judge(answers: &[Answer]) -> Look {
    let mut look = Look::Absent;
    let mut last = None;
    let mut is_known = true;
    for answer in answers {
        match answer {
            Answer::Gone => {}
            Answer::Failure(_) => is_known = false,
            Answer::Kernels(kernels) => {
                let busy = |kernel: &Kernel| kernel.execution_state.as_deref() == Some("busy");
                if kernels.iter().any(busy) {
                    return Look::Active;
                }
                let latest = kernels.iter().filter_map(|kernel| kernel.last_activity);
                last = last.max(latest.max());
                look = Look::Idle { last };
            }
        }
    }
    if is_known { look } else { Look::Unknown }
}

fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_server = PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        if is_server && name.ends_with(".json") && found.len() < MOST {
            found.push(path);
        }
    }
    Ok(found)
}

fn ask(path: &Path) -> Answer {
    let failure = |kind: &str, text: &str| {
        Answer::Failure(Problem::new(kind, format!("{}: {text}", path.display())))
    };
    let content = match file::read(path, LONGEST) {
        Ok(content) => content,
        // The server has ended in the meantime.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Answer::Gone,
        Err(error) => return failure("file", &error.to_string()),
    };
    // An error text of serde would quote a file that may belong to another user.
    let Ok(server) = serde_json::from_slice::<Server>(&content) else {
        return failure("file", "it does not describe a Jupyter server");
    };
    if !server.sock.is_empty() {
        return match UnixStream::connect(&server.sock) {
            Ok(_) => failure("socket", "servers on a Unix socket cannot be asked"),
            Err(_) => Answer::Gone,
        };
    }
    match server.address() {
        Err(problem) => Answer::Failure(problem),
        Ok(None) => Answer::Gone,
        Ok(Some(address)) => match server.kernels(address) {
            Ok(kernels) => Answer::Kernels(kernels),
            Err(problem) => Answer::Failure(problem),
        },
    }
}

impl Server {
    /// The address of this machine on which the server listens; none if it does not listen.
    fn address(&self) -> Result<Option<SocketAddr>, Problem> {
        let mut candidates: Vec<IpAddr> =
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        if let Ok(ip) = self.hostname.parse::<IpAddr>()
            && !ip.is_unspecified()
            && UdpSocket::bind((ip, 0)).is_ok()
        {
            candidates.insert(0, ip);
        }
        for ip in candidates {
            let address = SocketAddr::new(ip, self.port);
            match TcpStream::connect_timeout(&address, TIMEOUT) {
                Ok(_) => return Ok(Some(address)),
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    return Err(Problem::new("timeout", format!("{address}: {error}")));
                }
                // The connection was refused, or the machine has no IPv6.
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn kernels(&self, address: SocketAddr) -> Result<Vec<Kernel>, Problem> {
        let scheme = if self.secure { "https" } else { "http" };
        let base = self.base_url.trim_matches('/');
        let base = if base.is_empty() {
            String::new()
        } else {
            format!("/{base}")
        };
        let url = format!("{scheme}://{address}{base}/api/kernels");
        let client = http::client(&Trust::Anybody, TIMEOUT, None)
            .map_err(|error| Problem::new("client", error.to_string()))?;
        let mut request = client.get(&url);
        if !self.token.is_empty() {
            request = request.header("Authorization", format!("token {}", self.token));
        }
        let (status, text) = http::answer(&url, request.call())?;
        if status != 200 {
            let text = format!("{url}: HTTP {status}; a server without a token cannot be asked");
            return Err(Problem::new(status.to_string(), text));
        }
        serde_json::from_str(&text)
            .map_err(|_| Problem::new("answer", format!("{url}: it answers with no kernels")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernels(json: &str) -> Answer {
        Answer::Kernels(serde_json::from_str(json).unwrap())
    }

    fn failure() -> Answer {
        Answer::Failure(Problem::new("timeout", ""))
    }

    #[test]
    fn a_busy_kernel_is_use_even_if_another_server_fails() {
        let busy = || kernels(r#"[{"execution_state": "idle"}, {"execution_state": "busy"}]"#);
        assert_eq!(judge(&[busy()]), Look::Active);
        assert_eq!(judge(&[failure(), busy(), Answer::Gone]), Look::Active);
    }

    #[test]
    fn idle_kernels_have_their_last_activity() {
        let one = r#"[{"execution_state": "idle", "last_activity": "2026-11-22T10:00:00.5Z"}]"#;
        let other = r#"[{"execution_state": "starting", "last_activity": "2026-11-22T11:00:00Z"}]"#;
        let last = Some("2026-11-22T11:00:00Z".parse().unwrap());
        assert_eq!(judge(&[kernels(other), kernels(one)]), Look::Idle { last });
        assert_eq!(judge(&[kernels("[]")]), Look::Idle { last: None });
    }

    #[test]
    fn a_server_that_cannot_be_asked_may_have_busy_kernels() {
        assert_eq!(judge(&[kernels("[]"), failure()]), Look::Unknown);
    }

    #[test]
    fn a_machine_without_a_server_has_no_such_source() {
        assert_eq!(judge(&[]), Look::Absent);
        assert_eq!(judge(&[Answer::Gone]), Look::Absent);
    }
}
