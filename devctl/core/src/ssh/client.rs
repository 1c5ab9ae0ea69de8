//! Command lines of the user's own ssh and scp.

use std::path::Path;

use crate::host::{Program, Settings};
use crate::name::Host;
use crate::ssh::{PORT, USER};

/// OpenSSH's own ciphers (`ssh_config(5)`) with AES-GCM before chacha20-poly1305, which takes three times the
/// processor. The Terrapin attack (CVE-2023-48795) works on chacha20-poly1305 and not on AES-GCM.
const CIPHERS: &str = "aes128-gcm@openssh.com,aes256-gcm@openssh.com,\
    chacha20-poly1305@openssh.com,aes128-ctr,aes192-ctr,aes256-ctr";

/// The user's ssh, with the settings by which it reaches workspaces.
#[derive(Clone, Debug)]
pub struct Client(Settings);

/// The way by devctl's own `proxy`.
#[derive(Clone, Debug)]
pub struct Proxied<'a> {
    /// The path of devctl.
    pub devctl: &'a Path,
    /// Options that devctl's `proxy` gets: which cluster, which namespace.
    pub options: &'a [String],
    /// The file with the host keys.
    pub known_hosts: &'a Path,
    /// The private key; none for ssh's own choice.
    pub identity: Option<&'a Path>,
}

impl Client {
    /// ssh with these settings beside those of every place.
    pub fn new(way: Settings) -> Self {
        let everywhere = [
            ("User", USER.into()),
            ("Port", PORT.to_string()),
            ("GlobalKnownHostsFile", "none".into()),
            ("StrictHostKeyChecking", "yes".into()),
            ("UpdateHostKeys", "no".into()),
            ("CheckHostIP", "no".into()),
            ("CanonicalizeHostname", "no".into()),
            ("ServerAliveInterval", "15".into()),
            ("Ciphers", CIPHERS.into()),
        ];
        Self(everywhere.into_iter().chain(way).collect())
    }

    /// `ssh HOST COMMAND…`. The remote shell reads the words of the command (`ssh(1)`).
    pub fn ssh(&self, host: &Host, flags: &[&str], command: &[String]) -> Program {
        let mut arguments = self.settings("-o");
        arguments.extend(flags.iter().map(|&flag| flag.to_owned()));
        arguments.extend(["--".to_owned(), host.to_string()]);
        arguments.extend(command.iter().cloned());
        Program::new("ssh", arguments)
    }

    /// `scp FROM TO`.
    pub fn scp(&self, recursive: bool, from: &str, to: &str) -> Program {
        let mut arguments = self.settings("-o");
        if recursive {
            arguments.push("-r".into());
        }
        arguments.extend(["--", from, to].map(str::to_owned));
        Program::new("scp", arguments)
    }

    /// The settings as one line each, for a file of ssh's configuration.
    pub fn lines(&self) -> Vec<String> {
        let settings = self.0.iter();
        settings
            .map(|(key, value)| format!("{key} {value}"))
            .collect()
    }

    fn settings(&self, flag: &str) -> Vec<String> {
        let settings = self.0.iter();
        settings
            .flat_map(|(key, value)| [flag.to_owned(), format!("{key}={value}")])
            .collect()
    }
}

impl Proxied<'_> {
    /// ssh whose `ProxyCommand` is devctl.
    pub fn client(&self) -> Client {
        // An editor may have another environment than the shell in which devctl was run.
        let words = [
            self.devctl.display().to_string(),
            "proxy".into(),
            "--known-hosts".into(),
            self.known_hosts.display().to_string(),
        ];
        let words = words
            .iter()
            .chain(self.options)
            .map(|word| tokens(&shell(word)));
        let proxy: Vec<String> = words.chain(["%n".into(), "%p".into()]).collect();
        let quoted = |path: &Path| format!("\"{}\"", tokens(&path.display().to_string()));
        let identity = self.identity.map(|path| ("IdentityFile", quoted(path)));
        let way = [
            ("ProxyCommand", proxy.join(" ")),
            ("UserKnownHostsFile", quoted(self.known_hosts)),
        ];
        Client::new(way.into_iter().chain(identity).collect())
    }
}

/// One word of a command that a shell of POSIX reads. ssh runs `ProxyCommand` by the user's shell.
pub fn shell(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Text in which ssh expands no token (`ssh_config(5)`, "TOKENS").
pub fn tokens(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(devctl: &str, options: &[String]) -> Client {
        let proxied = Proxied {
            devctl: Path::new(devctl),
            options,
            known_hosts: Path::new("/home/a b/known_hosts"),
            identity: None,
        };
        proxied.client()
    }

    #[test]
    fn paths_with_blanks_and_percents_reach_ssh_whole() {
        let options = ["--context".to_owned(), "it's".to_owned()];
        let lines = client("/opt/my tools/100%/devctl", &options).lines();
        assert!(
            lines.contains(
                &r"ProxyCommand '/opt/my tools/100%%/devctl' proxy --known-hosts '/home/a b/known_hosts' --context 'it'\''s' %n %p"
                    .to_owned()
            ),
            "{lines:#?}"
        );
        assert!(lines.contains(&r#"UserKnownHostsFile "/home/a b/known_hosts""#.to_owned()));
    }

    #[test]
    fn the_command_is_no_option_of_ssh() {
        let host = "my-dev.ws".parse().unwrap();
        let words = ["-oProxyCommand=x".to_owned()];
        let program = client("/usr/bin/devctl", &[]).ssh(&host, &["-t"], &words);
        let end = program
            .arguments
            .iter()
            .position(|word| word == "--")
            .unwrap();
        assert_eq!(
            program.arguments[end..],
            ["--", "my-dev.ws", "-oProxyCommand=x"]
        );
        assert_eq!(program.name, "ssh");
    }
}
