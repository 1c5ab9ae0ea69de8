//! `cargo xtask imports`: checks that no modules of a crate import each other in a cycle, here
//! called a ring.
//!
//! Cargo refuses a ring of crates. Within a crate, rustc lets every module import every other one.
//! So this command reads the sources: `use` items, and paths that begin with `crate`, `super` or
//! `self`. It ignores the imports of tests.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

mod modules;

use modules::{Module, Modules};

/// The folders of the product's crates.
const CRATES: &[&str] = &[
    "agent",
    "agent/report",
    "api",
    "bastion",
    "bastion/core",
    "devctl/api-server",
    "devctl/cli",
    "devctl/core",
    "devctl/terminal",
    "function",
    "function/cluster",
    "function/ec2",
    "function/flavors",
    "function/preview",
    "function/runtime",
    "function/server",
    "function/users",
    "function/workspace",
    "listening",
    "portal",
    "portal/core",
    "provider/aws",
    "provider/controller",
    "provider/core",
    "provider/runtime",
    "streams",
];

/// The imports of each module: for each module that it imports from, the imported items.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

pub(crate) fn run() -> ExitCode {
    match check(&crate::root()) {
        Ok((crates, modules)) => {
            println!("{crates} crates, {modules} modules, no ring of imports");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(root: &Path) -> Result<(usize, usize), Box<dyn Error>> {
    let mut count = 0;
    let mut rings = Vec::new();
    for name in CRATES {
        let modules = modules::read(&root.join(name).join("src"))?;
        count += modules.len();
        let imports = imports(&modules);
        rings.extend(
            self::rings(&imports)
                .iter()
                .map(|ring| describe(name, ring, &imports)),
        );
    }
    if rings.is_empty() {
        Ok((CRATES.len(), count))
    } else {
        Err(rings.join("\n").into())
    }
}

/// Collects the imports of all modules.
fn imports(modules: &Modules) -> Imports {
    let of = |(name, module): (&String, &Module)| {
        let mut imported: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (other, item) in module.paths.iter().map(|path| origin(modules, path)) {
            if other != *name {
                let item = item.first().map_or("itself", String::as_str);
                imported.entry(other).or_default().insert(item.to_owned());
            }
        }
        (name.clone(), imported)
    };
    modules.iter().map(of).collect()
}

/// Returns the module that a path leads to, and the rest of the path. The longest beginning of the
/// path that names a module is the module. If that module re-exports the item, the item's origin is
/// another module.
fn origin(modules: &Modules, path: &[String]) -> (String, Vec<String>) {
    let ends = (0..=path.len()).rev();
    let mut beginnings = ends.map(|end| (path[..end].join("::"), &path[end..]));
    let found = beginnings.find_map(|(name, item)| Some((modules.get(&name)?, name, item)));
    let Some((module, name, item)) = found else {
        return (String::new(), path.to_vec());
    };
    let handed_on = item.split_first().and_then(|(first, rest)| {
        let path = module.handed_on.get(first)?;
        Some([path.as_slice(), rest].concat())
    });
    match handed_on {
        Some(other) if other != path => origin(modules, &other),
        _ => (name, item.to_vec()),
    }
}

/// The groups of modules in which each module imports every other one, directly or indirectly.
fn rings(imports: &Imports) -> Vec<BTreeSet<&str>> {
    let edges = imports
        .iter()
        .flat_map(|(from, imported)| imported.keys().map(|to| (from.as_str(), to.as_str())));
    let graph: DiGraphMap<&str, ()> = DiGraphMap::from_edges(edges);
    let groups = tarjan_scc(&graph).into_iter();
    groups
        .filter(|group| group.len() > 1)
        .map(|group| group.into_iter().collect())
        .collect()
}

fn describe(name: &str, ring: &BTreeSet<&str>, imports: &Imports) -> String {
    let within = |module: &str| ring.contains(module);
    let lines = imports
        .iter()
        .flat_map(|(from, imported)| imported.iter().map(move |(to, items)| (from, to, items)));
    let lines = lines
        .filter(|(from, to, _)| within(from) && within(to))
        .map(|(from, to, items)| {
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            let [from, to] = [from, to].map(|module| modules::shown(module));
            format!("\n  {from} imports {} of {to}", items.join(", "))
        });
    let count = ring.len();
    format!(
        "{name}: {count} modules import each other in a ring; move what both sides need into a \
         module that imports neither:{}",
        lines.collect::<String>()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> Modules {
        files
            .iter()
            .map(|(name, text)| ((*name).to_owned(), modules::parse(name, text).unwrap()))
            .collect()
    }

    fn ring(files: &[(&str, &str)]) -> Vec<String> {
        let imports = imports(&crate_of(files));
        let rings = rings(&imports);
        rings
            .iter()
            .map(|ring| describe("planted", ring, &imports))
            .collect()
    }

    #[test]
    fn a_ring_of_imports_is_named_with_its_modules_and_items() {
        let files = [
            ("", "mod a; mod b; mod c;"),
            ("a", "use crate::b::{Beta, c::*}; pub struct Alpha;"),
            (
                "b",
                "pub fn beta() { let _ = super::c::GAMMA; } pub struct Beta;",
            ),
            (
                "c",
                "use crate::{a, b as _}; pub const GAMMA: u8 = a::ALPHA;",
            ),
        ];
        let found = ring(&files);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("planted: 3 modules"), "{}", found[0]);
        assert!(found[0].contains("b imports GAMMA of c"), "{}", found[0]);
    }

    #[test]
    fn a_parent_that_its_child_imports_and_that_imports_its_child_is_a_ring() {
        let files = [
            ("", "mod parent;"),
            (
                "parent",
                "mod child; use child::Child; pub const LENGTH: u8 = 1;",
            ),
            ("parent::child", "use super::LENGTH; pub struct Child;"),
        ];
        assert_eq!(ring(&files).len(), 1);
    }

    #[test]
    fn what_a_parent_hands_on_is_imported_from_where_it_is() {
        let apart = [
            ("", "mod parent;"),
            ("parent", "mod a; mod b; pub use a::Alpha; pub use b::Beta;"),
            ("parent::a", "use super::Beta; pub struct Alpha;"),
            ("parent::b", "pub struct Beta;"),
        ];
        assert_eq!(ring(&apart), Vec::<String>::new());
        let mut tied = apart;
        tied[3].1 = "use crate::parent::Alpha; pub struct Beta;";
        assert!(ring(&tied)[0].contains("parent::a imports Beta of parent::b"));
    }

    #[test]
    fn a_path_within_a_macro_counts() {
        let files = [
            ("", "mod a; mod b;"),
            ("a", "fn a() { json!({\"b\": crate::b::BETA}); }"),
            ("b", "use crate::a; fn b() { a::a() }"),
        ];
        assert_eq!(ring(&files).len(), 1);
    }

    #[test]
    fn what_only_tests_import_is_no_ring() {
        let files = [
            ("", "mod a; mod b;"),
            (
                "a",
                "use crate::b::Beta; #[cfg(test)] mod tests { use super::*; }",
            ),
            (
                "b",
                "pub struct Beta; #[cfg(test)] mod tests { use crate::a::Alpha; }",
            ),
        ];
        assert_eq!(ring(&files), Vec::<String>::new());
    }
}
