use super::*;
use crate::modules::{MODULES, Module, find};

fn pins(files: &[(&str, &str)]) -> Pins {
    let mut files: Vec<_> = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
        .collect();
    files.sort();
    Pins {
        folder: PathBuf::new(),
        files,
    }
}

const GO_MOD: &str = "module x\n\ngo 1.26.0\n\ntool k8s.io/kubernetes/cmd/kubelet\n\n\
                      require (\n\tk8s.io/api v0.37.0 // indirect\n\
                      \tk8s.io/kubernetes v1.37.0 // indirect\n)\n";

#[test]
fn every_module_of_the_table_has_its_pins() {
    for module in MODULES {
        let pins = Pins::read(module).unwrap();
        assert!(pins.go_version().is_some(), "{}: no go line", module.folder);
        let programs = module.binaries.iter().map(|binary| binary.source);
        let sources = programs.chain(module.stamps.iter().map(|stamp| stamp.source));
        for source in sources.filter(|source| !source.is_empty()) {
            let version = pins.version(source);
            assert!(
                version.is_some(),
                "{}: no version of {source}",
                module.folder
            );
        }
    }
}

#[test]
fn a_binary_name_is_taken_once() {
    let mut names: Vec<_> = MODULES
        .iter()
        .flat_map(|module| module.binaries.iter().map(|binary| binary.name))
        .collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn clients_see_the_version_that_go_mod_pins() {
    let (module, _) = find("kubelet").unwrap();
    let flags = pins(&[("go.mod", GO_MOD)]).ldflags(module);
    assert!(flags.contains("gitVersion=v1.37.0 "), "{flags}");
    assert!(flags.contains("gitMajor=1 "), "{flags}");
    assert!(flags.ends_with("gitMinor=37"), "{flags}");
}

#[test]
fn a_single_line_requirement_is_found_too() {
    let pins = pins(&[("go.mod", "require example.org/a v1.2.3\n")]);
    assert_eq!(pins.version("example.org/a"), Some("v1.2.3"));
    assert_eq!(pins.version("example.org"), None);
}

#[test]
fn a_raised_pin_is_built_anew_and_an_unchanged_one_is_not() {
    let (module, binary) = find("kubelet").unwrap();
    let key = |go_mod: &str, go_sum: &str, go: &str| {
        pins(&[("go.mod", go_mod), ("go.sum", go_sum)]).key(module, binary, go)
    };
    let first = key(GO_MOD, "a", "go1.26.8");
    assert_eq!(first, key(GO_MOD, "a", "go1.26.8"));
    assert_ne!(
        first,
        key(&GO_MOD.replace("0.37.0", "0.37.1"), "a", "go1.26.8")
    );
    assert_ne!(first, key(GO_MOD, "b", "go1.26.8"));
    assert_ne!(first, key(GO_MOD, "a", "go1.26.9"));
    let (_, other) = find("kubectl").unwrap();
    let pins = pins(&[("go.mod", GO_MOD), ("go.sum", "a")]);
    assert_ne!(first, pins.key(module, other, "go1.26.8"));
}

#[test]
fn a_changed_program_of_ours_is_built_anew() {
    let (module, binary) = find("pause").unwrap();
    let key = |path: &str, source: &str| pins(&[(path, source)]).key(module, binary, "go1.26.8");
    let ours = "./pause/main.go";
    assert_ne!(
        key(ours, "package main"),
        key(ours, "package main // other")
    );
    let other = "./volumes/main.go";
    assert_eq!(
        key(other, "package main"),
        key(other, "package main // other")
    );
}

#[test]
fn a_program_of_which_other_parts_are_left_out_is_built_anew() {
    let (module, binary) = find("provider-aws-ec2").unwrap();
    let key = |narrowed| {
        let module = Module {
            narrowed,
            ..*module
        };
        pins(&[("go.mod", GO_MOD)]).key(&module, binary, "go1.26.8")
    };
    let whole = key(&[]);
    let narrow = key(module.narrowed);
    assert_ne!(whole, narrow);
    assert_ne!(narrow, key(&module.narrowed[..1]));
}
