//! What an instance says on its console about its setup, and its SSH host keys.
//!
//! The owner of an instance writes to its console, too. So the provider reads known lines only, and
//! passes no other text on.

use activity_report::host_key;
use activity_report::setup::{self, SetupResult};
use jiff::{SignedDuration, Timestamp};

/// The beginning of the lines that the setup writes.
const LINE: &str = "gpu-workspace setup ";
/// The lines around the host keys that cloud-init writes.
const KEYS_BEGIN: &str = "-----BEGIN SSH HOST KEY KEYS-----";
const KEYS_END: &str = "-----END SSH HOST KEY KEYS-----";
/// The most bytes of a line that are looked at.
const LONGEST_LINE: usize = 4096;

/// How long after its launch an instance is expected to answer. Until then its console is read every
/// minute.
const ANSWER_WITHIN: SignedDuration = SignedDuration::from_mins(15);
/// How long after its launch the console of an instance is read.
const READ_FOR: SignedDuration = SignedDuration::from_hours(1);
const OFTEN: SignedDuration = SignedDuration::from_mins(1);
const SELDOM: SignedDuration = SignedDuration::from_mins(5);

/// When the console of an instance is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsoleReading {
    /// When EC2 launched the instance.
    pub launched_at: Timestamp,
    /// When its console was read last; none before the first time.
    pub read_at: Option<Timestamp>,
}

impl ConsoleReading {
    /// When to read the console next; none for an instance that is an hour old. Setups are retried,
    /// so that a failed one is read again, too.
    pub fn next(self) -> Option<Timestamp> {
        let end = self.launched_at + READ_FOR;
        let next = match self.read_at {
            None => self.launched_at,
            Some(read) if read < Self::doubted_from(self.launched_at) => read + OFTEN,
            Some(read) => read + SELDOM,
        };
        (next < end).then_some(next)
    }

    /// From when on the provider no longer believes that the setup of a silent instance goes on.
    pub fn doubted_from(launched_at: Timestamp) -> Timestamp {
        launched_at + ANSWER_WITHIN
    }
}

/// What a console says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Console {
    /// The result that the setup wrote last; none before the first.
    pub setup: Option<SetupResult>,
    /// The SSH host keys, each as type and base64 data, sorted by type. One key of each type at most.
    pub host_keys: Vec<String>,
}

impl Console {
    /// Reads a console's output. EC2 keeps its last 64 KiB.
    pub fn read(output: &[u8]) -> Self {
        let mut console = Self::default();
        let mut is_in_keys = false;
        for line in output.split(|byte| matches!(byte, b'\n' | b'\r')) {
            let text = String::from_utf8_lossy(&line[..line.len().min(LONGEST_LINE)]);
            let text = text.trim();
            if text.ends_with(KEYS_BEGIN) {
                is_in_keys = true;
                console.host_keys.clear();
            } else if text.ends_with(KEYS_END) {
                is_in_keys = false;
            } else if is_in_keys {
                console.add_key(text);
            } else if let Some(result) = setup_result(text) {
                console.setup = Some(result);
            }
        }
        console.host_keys.sort();
        console
    }

    /// Adds the key in a line. Consoles may put a time or the name of a program before it.
    fn add_key(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let mut pairs = words.windows(2);
        let Some(key) = pairs.find_map(|pair| host_key::read(&pair.join(" "))) else {
            return;
        };
        let kind = |key: &str| key.split(' ').next().map(str::to_owned);
        if self.host_keys.iter().all(|known| kind(known) != kind(&key)) {
            self.host_keys.push(key);
        }
    }
}

/// The result in a line of the console; none if it has none. cloud-init and systemd may put a time
/// or the name of a program before the line.
fn setup_result(line: &str) -> Option<SetupResult> {
    let (_, result) = line.split_once(LINE)?;
    setup::read(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str =
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

    fn setup(output: &str) -> Option<SetupResult> {
        Console::read(output.as_bytes()).setup
    }

    #[test]
    fn the_last_result_of_a_setup_counts() {
        let failed = "gpu-workspace setup FAILED: install OpenCV (exit 1), see /var/log/setup.log";
        let step = "install OpenCV (exit 1), see /var/log/setup.log".to_owned();
        assert_eq!(setup("booting\nlogin: "), None);
        assert_eq!(setup(failed), Some(SetupResult::Failed(step)));
        let again = format!("{failed}\r\n[  42.1] cloud-init[812]: gpu-workspace setup done\r\n");
        assert_eq!(setup(&again), Some(SetupResult::Done));
    }

    #[test]
    fn a_hostile_console_gives_no_text_of_its_own() {
        for line in [
            "gpu-workspace setup FAILED: <script>alert(1)</script>",
            "gpu-workspace setup FAILED: a\u{1b}[2Kb",
            "gpu-workspace setup FAILED: \u{202e}evil",
            "gpu-workspace setup FAILED: ",
            "gpu-workspace setup done, trust me",
            "gpu-workspace setup",
        ] {
            assert_eq!(setup(line), None, "{line:?}");
        }
        let long = format!("gpu-workspace setup FAILED: {}", "x".repeat(1 << 20));
        assert_eq!(setup(&long), Some(SetupResult::Failed("x".repeat(200))));
    }

    #[test]
    fn host_keys_are_read_without_their_comments() {
        let output = format!(
            "-----BEGIN SSH HOST KEY KEYS-----\r\n\
             [   9.1] cloud-init[700]: {KEY} root@ip-10-0-0-7\r\n\
             -----END SSH HOST KEY KEYS-----\r\n"
        );
        assert_eq!(Console::read(output.as_bytes()).host_keys, [KEY]);
    }

    #[test]
    fn a_console_adds_no_line_to_somebodys_known_hosts() {
        let data = KEY.split(' ').nth(1).unwrap();
        for line in [
            format!("ssh-dss {data}"),
            format!("ssh-rsa {data}"),
            "ssh-ed25519 not-base64".to_owned(),
            "ssh-ed25519 AAAA".to_owned(),
            "* ssh-ed25519".to_owned(),
        ] {
            let output = format!("{KEYS_BEGIN}\n{line}\n{KEYS_END}\n");
            let keys = Console::read(output.as_bytes()).host_keys;
            assert_eq!(keys, Vec::<String>::new(), "{line:?}");
        }
        let outside = Console::read(format!("{KEY}\n").as_bytes());
        assert_eq!(outside.host_keys, Vec::<String>::new());
    }

    #[test]
    fn a_machine_that_boots_again_has_the_host_keys_of_its_last_boot() {
        let of = |key: &str| format!("{KEYS_BEGIN}\n{key}\n{KEYS_END}\n");
        let other =
            "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
        let output = of(other) + &of(KEY);
        assert_eq!(Console::read(output.as_bytes()).host_keys, [KEY]);
    }

    #[test]
    fn a_console_is_read_once_a_minute_and_later_seldom_and_at_rest_never() {
        let launched_at = Timestamp::UNIX_EPOCH;
        let mut read_at = None;
        let mut reads = Vec::new();
        while let Some(next) = (ConsoleReading {
            launched_at,
            read_at,
        })
        .next()
        {
            reads.push(next.as_second() / 60);
            read_at = Some(next);
        }
        let often: Vec<i64> = (0..=15).collect();
        let seldom = [20, 25, 30, 35, 40, 45, 50, 55];
        assert_eq!(reads, [often.as_slice(), &seldom].concat());
    }
}
