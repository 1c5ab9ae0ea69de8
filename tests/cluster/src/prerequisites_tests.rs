use super::*;

fn enough() -> Facts<'static> {
    Facts {
        memory: MEMORY_TO_BUILD,
        disk: DISK_TO_BUILD,
        cache: Path::new("/cache"),
    }
}

#[test]
fn a_complete_machine_is_not_complained_about() {
    assert_eq!(missing(&enough(), true), []);
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let facts = Facts {
        memory: 1 << 30,
        disk: 1 << 30,
        cache: Path::new("/a b"),
    };
    let text = render(&missing(&facts, true));
    for word in [
        "11.0 GiB of free memory (found 1.0 GiB)",
        "16.0 GiB of free disk (found 1.0 GiB)",
        "a cache folder without",
    ] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
}

#[test]
fn less_memory_and_disk_are_enough_once_everything_is_built() {
    let facts = Facts {
        memory: MEMORY,
        disk: DISK,
        ..enough()
    };
    assert_eq!(missing(&facts, false), []);
    assert_eq!(missing(&facts, true).len(), 2);
}

#[test]
fn a_cache_folder_that_would_break_search_paths_is_refused() {
    for path in ["/a:b", "/a b", "/a'b"] {
        let facts = Facts {
            cache: Path::new(path),
            ..enough()
        };
        assert_eq!(missing(&facts, true).len(), 1, "{path}");
    }
}

mod programs {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Output};
    use std::time::{Duration, Instant};

    /// The programs that the script itself calls.
    const TOOLS: &[&str] = &[
        "dirname", "grep", "head", "id", "printf", "sed", "sh", "sort", "tail", "touch", "chmod",
    ];

    /// A simulated machine: a folder that is the script's whole `PATH`.
    struct Machine {
        folder: PathBuf,
    }

    impl Machine {
        /// A machine with all programs of the list, and with newer versions of Rust and Go than
        /// necessary.
        fn complete(name: &str) -> Self {
            let folder = format!("prerequisites-{name}-{}", std::process::id());
            let machine = Self {
                folder: std::env::temp_dir().join(folder),
            };
            fs::create_dir_all(&machine.folder).unwrap();
            let path = std::env::var_os("PATH").unwrap();
            for tool in TOOLS {
                let found = std::env::split_paths(&path)
                    .map(|folder| folder.join(tool))
                    .find(|file| file.is_file());
                symlink(found.unwrap(), machine.folder.join(tool)).unwrap();
            }
            for line in include_str!("../prerequisites.list").lines() {
                let signs = line.split_whitespace().skip(1);
                for sign in
                    signs.filter(|sign| !line.starts_with('#') && !sign.contains(['/', ':']))
                {
                    machine.program(sign, "exit 0");
                }
            }
            machine.program("rustc", "echo 'rustc 1.99.0 (0 2026-01-01)'");
            machine.program(
                "go",
                "[ $1 = version ] && echo 'go version go1.99.1 linux/amd64'",
            );
            machine
        }

        fn program(&self, name: &str, text: &str) {
            let file = self.folder.join(name);
            // Writing through a link would overwrite the program of the real machine.
            if file.is_symlink() {
                fs::remove_file(&file).unwrap();
            }
            fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        }

        fn without(self, name: &str) -> Self {
            fs::remove_file(self.folder.join(name)).unwrap();
            self
        }

        fn check(&self, install: &str) -> (Output, String) {
            let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("prerequisites.sh");
            let ran = Command::new("/bin/sh")
                .arg(script)
                .env_clear()
                .env("PATH", &self.folder)
                .env("SYSTEM_PATH", "")
                .env("INSTALL", install)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&ran.stderr).into_owned();
            (ran, said)
        }
    }

    impl Drop for Machine {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.folder).unwrap();
        }
    }

    #[test]
    fn one_missing_program_is_named_with_its_package_before_anything_is_compiled() {
        let machine = Machine::complete("named").without("nft");
        machine.program("apt-get", "touch ${0%/*}/called");
        let began = Instant::now();
        let (ran, said) = machine.check("no");
        assert!(
            began.elapsed() < Duration::from_secs(2),
            "{:?}",
            began.elapsed()
        );
        assert!(!ran.status.success());
        assert!(
            said.contains("apt-get install -y --no-install-recommends nftables"),
            "{said}"
        );
        assert!(
            !machine.folder.join("called").exists(),
            "INSTALL=no installed"
        );
    }

    #[test]
    fn missing_packages_are_installed_unless_somebody_refuses() {
        let machine = Machine::complete("installed").without("nft").without("git");
        machine.program(
            "apt-get",
            "case $1 in install) for p in \"$@\"; do case $p in nftables) p=nft ;; esac; \
             printf '#!/bin/sh\\n' >${0%/*}/$p; chmod +x ${0%/*}/$p; done ;; esac",
        );
        let (ran, said) = machine.check("");
        assert!(ran.status.success(), "{said}");
        assert!(said.contains("git nftables"), "{said}");
        let (_, said) = machine.check("");
        assert_eq!(said, "", "a complete machine needs no word");
    }

    #[test]
    fn a_machine_that_passes_can_build_the_image_of_workspaces() {
        let build = include_str!("../../../images/workspace/build.sh");
        let signs: Vec<&str> = include_str!("../prerequisites.list")
            .lines()
            .filter(|line| !line.starts_with('#'))
            .flat_map(|line| line.split_whitespace().skip(1))
            .collect();
        let lines = build.lines().map(str::split_whitespace);
        let modules: Vec<&str> = lines
            .filter_map(|mut words| {
                let is_module = words.next() == Some("python3") && words.next() == Some("-m");
                words.next().filter(|_| is_module)
            })
            .collect();
        assert!(!modules.is_empty(), "the build runs no module of Python");
        for module in modules {
            let sign = format!("python:{module}");
            assert!(signs.contains(&sign.as_str()), "{sign} is not in the list");
        }
    }

    #[test]
    fn what_apt_cannot_bring_is_named_with_what_was_found() {
        let machine = Machine::complete("by-hand").without("rustc");
        machine.program(
            "go",
            "[ $1 = version ] && echo 'go version go1.9.8 linux/amd64'",
        );
        machine.program("id", "echo 1000");
        let (ran, said) = machine.check("");
        assert!(!ran.status.success());
        for words in [
            "- root",
            "- Rust 1.",
            "(found 1.9.8): install it",
            "sudo -E",
        ] {
            assert!(said.contains(words), "{words} is not in:\n{said}");
        }
    }
}
