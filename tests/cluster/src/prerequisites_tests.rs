use super::*;

const NEEDS: Needs<'static> = Needs {
    go: "1.26.0",
    building: true,
};

fn complete() -> Facts {
    Facts {
        root: true,
        go: Some("go1.26.8".to_owned()),
        present: PACKAGED.iter().map(|(name, ..)| *name).collect(),
        memory: MEMORY,
        disk: DISK_TO_BUILD,
        cache: "/cache".into(),
    }
}

#[test]
fn a_complete_machine_is_not_complained_about() {
    assert_eq!(missing(&complete(), NEEDS), []);
}

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let facts = Facts {
        root: false,
        go: None,
        present: vec!["tar"],
        memory: 1 << 30,
        disk: 1 << 30,
        ..complete()
    };
    let text = render(&missing(&facts, NEEDS));
    for word in [
        "root",
        "Go 1.26.0",
        "runc",
        "nft:",
        "apt-get install nftables",
        "CNI",
        "3.0 GiB of free memory",
        "16.0 GiB of free disk (found 1.0 GiB)",
        "--install-prerequisites",
    ] {
        assert!(text.contains(word), "{word} is not in:\n{text}");
    }
    assert!(!text.contains("- tar"), "{text}");
}

#[test]
fn the_command_at_the_end_names_each_package_once() {
    let facts = Facts {
        present: Vec::new(),
        ..complete()
    };
    let text = render(&missing(&facts, NEEDS));
    let command = text
        .lines()
        .find(|line| line.contains("apt-get update"))
        .unwrap_or_default();
    assert_eq!(command.matches("util-linux").count(), 1, "{command}");
    assert!(command.contains("conntrack"), "{command}");
}

#[test]
fn an_old_go_is_refused_with_the_version_that_was_found() {
    let facts = Facts {
        go: Some("go1.19.8".to_owned()),
        ..complete()
    };
    let found = missing(&facts, NEEDS);
    assert_eq!(found[0].what, "Go 1.26.0 or newer (found go1.19.8)");
    assert!(at_least("go1.27rc1", "1.26.0") || at_least("go1.27.0", "1.26.0"));
    assert!(!at_least("go1.9.0", "1.26.0"));
}

#[test]
fn less_disk_is_enough_once_everything_is_built() {
    let facts = Facts {
        disk: DISK,
        ..complete()
    };
    let built = Needs {
        building: false,
        ..NEEDS
    };
    assert_eq!(missing(&facts, built), []);
    assert_eq!(missing(&facts, NEEDS).len(), 1);
}

#[test]
fn a_cache_folder_that_would_break_search_paths_is_refused() {
    for path in ["/a:b", "/a b", "/a'b"] {
        let facts = Facts {
            cache: path.into(),
            ..complete()
        };
        assert_eq!(missing(&facts, NEEDS).len(), 1, "{path}");
    }
}
