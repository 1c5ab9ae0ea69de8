//! The modules of a crate, and the paths in each module that lead to items of the same crate.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, File, Item, ItemMod, ItemUse, Macro, UseTree, Visibility};

/// Modules by path. A path has no `crate`, for example `cost::budget`; the crate's root has the
/// empty path.
pub(super) type Modules = BTreeMap<String, Module>;

/// A module with a file of its own.
pub(super) struct Module {
    /// Every path in it that leads into the crate, as a path from the crate's root.
    pub(super) paths: Vec<Vec<String>>,
    /// Its re-exports (`pub use`), by name, with the path of the origin. An import of a re-export
    /// counts as an import from the origin.
    pub(super) handed_on: BTreeMap<String, Vec<String>>,
    children: Vec<String>,
}

/// Reads a crate: `lib.rs` with its modules, or `main.rs` if there is no library.
pub(super) fn read(source: &Path) -> Result<Modules, Box<dyn Error>> {
    let roots = ["lib.rs", "main.rs"].map(|name| source.join(name));
    let root = roots.into_iter().find(|file| file.exists());
    let root = root.ok_or_else(|| format!("{} has no lib.rs and no main.rs", source.display()))?;
    let mut modules = Modules::new();
    let mut open = vec![(String::new(), root)];
    while let Some((name, file)) = open.pop() {
        let text = std::fs::read_to_string(&file)
            .map_err(|e| format!("cannot read {}: {e}", file.display()))?;
        let module = parse(&name, &text).map_err(|e| format!("{}: {e}", file.display()))?;
        for child in &module.children {
            let child = join(&name, child);
            open.push((child.clone(), file_of(source, &child)));
        }
        modules.insert(name, module);
    }
    Ok(modules)
}

/// Reads the text of a module. Inline modules belong to it; tests are ignored.
pub(super) fn parse(name: &str, text: &str) -> Result<Module, syn::Error> {
    let file: File = syn::parse_file(text)?;
    let mut reader = Reader {
        at: name
            .split("::")
            .filter(|part| !part.is_empty())
            .map(str::to_owned)
            .collect(),
        module: Module {
            paths: Vec::new(),
            handed_on: BTreeMap::new(),
            children: Vec::new(),
        },
        depth: 0,
    };
    reader.visit_file(&file);
    Ok(reader.module)
}

/// A module's name for people.
pub(super) fn shown(module: &str) -> &str {
    if module.is_empty() {
        "the crate's root"
    } else {
        module
    }
}

fn file_of(source: &Path, module: &str) -> PathBuf {
    let path = source.join(module.replace("::", "/"));
    let file = path.with_extension("rs");
    if file.exists() {
        file
    } else {
        path.join("mod.rs")
    }
}

fn join(module: &str, child: &str) -> String {
    if module.is_empty() {
        child.to_owned()
    } else {
        format!("{module}::{child}")
    }
}

struct Reader {
    at: Vec<String>,
    module: Module,
    /// The number of inline modules around the current item.
    depth: usize,
}

impl Reader {
    /// Adds a path as it is written in the source, if it leads into the crate.
    fn add(&mut self, written: &[String]) {
        self.module.paths.extend(self.within_crate(written));
    }

    /// Adds a path of several names. A single name is ignored, because it may be a variable.
    fn add_path(&mut self, written: &[String]) {
        if written.len() > 1 {
            self.add(written);
        }
    }

    fn within_crate(&self, written: &[String]) -> Option<Vec<String>> {
        let (first, rest) = written.split_first()?;
        let mut path = match first.as_str() {
            "crate" => Vec::new(),
            "self" => self.at.clone(),
            "super" => {
                // The parent of an inline module is the module of this file.
                let up = usize::from(self.depth == 0);
                self.at[..self.at.len().saturating_sub(up)].to_vec()
            }
            // In Rust 2024, a path may begin with the name of a child module.
            child if self.module.children.iter().any(|known| known == child) => {
                let mut path = self.at.clone();
                path.push(child.to_owned());
                path
            }
            _ => return None,
        };
        for part in rest {
            match part.as_str() {
                "super" => {
                    path.pop();
                }
                "self" => {}
                part => path.push(part.to_owned()),
            }
        }
        Some(path)
    }

    /// Adds the imports of a `use`. With `hands_on`, the `use` re-exports the items, and counts as
    /// no import.
    fn add_tree(&mut self, before: &[String], tree: &UseTree, hands_on: bool) {
        let with = |name: &str| [before, &[name.to_owned()]].concat();
        let (written, name) = match tree {
            UseTree::Path(path) => {
                let before = with(&path.ident.to_string());
                return self.add_tree(&before, &path.tree, hands_on);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_tree(before, tree, hands_on);
                }
                return;
            }
            UseTree::Name(name) => (with(&name.ident.to_string()), name.ident.to_string()),
            UseTree::Rename(name) => (with(&name.ident.to_string()), name.rename.to_string()),
            UseTree::Glob(_) => return self.add(&with("*")),
        };
        match self.within_crate(&written) {
            Some(path) if hands_on => {
                self.module.handed_on.insert(name, path);
            }
            path => self.module.paths.extend(path),
        }
    }

    /// Adds the paths in the arguments of a macro, which syn does not parse.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add_path(&std::mem::take(&mut path));
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.add_path(&std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.add_path(&path);
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_file(&mut self, file: &'ast File) {
        for item in &file.items {
            if let Item::Mod(module) = item
                && module.content.is_none()
                && !is_test(&module.attrs)
            {
                self.module.children.push(module.ident.to_string());
            }
        }
        visit::visit_file(self, file);
    }

    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Mod(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if !is_test(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast ItemMod) {
        self.depth += 1;
        visit::visit_item_mod(self, module);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let hands_on = !matches!(item.vis, Visibility::Inherited);
        self.add_tree(&[], &item.tree, hands_on);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let written: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if path.leading_colon.is_none() {
            self.add_path(&written);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.add_tokens(called.tokens.clone());
        visit::visit_macro(self, called);
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|condition| condition == "test")
    })
}
