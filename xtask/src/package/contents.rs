//! Which packages there are, and what goes into each.

/// The organisation in package references and, by Crossplane's rule, in the
/// names of installed packages.
pub(crate) const ORGANISATION: &str = "acme";

/// A Crossplane package.
pub(crate) struct Package {
    /// Its kind, as the crossplane CLI names it.
    pub(crate) kind: &'static str,
    /// The last part of its reference.
    pub(crate) name: &'static str,
    /// The folder below `package/` with its metadata and what only it has. All of it
    /// goes into the package.
    pub(crate) folder: &'static str,
    /// Folders below the repository's root whose manifests it holds as well. Only the
    /// files that lie directly in them: what lies deeper belongs to another package.
    pub(crate) manifests: &'static [&'static str],
    /// The program that it runs.
    pub(crate) program: Option<&'static str>,
}

/// In the order in which they are installed.
pub(crate) const PACKAGES: &[Package] = &[
    Package {
        kind: "provider",
        name: "provider-gpu-spot",
        folder: "provider",
        manifests: &[],
        program: Some("provider-gpu-spot"),
    },
    Package {
        kind: "function",
        name: "function-gpu-workspace",
        folder: "function",
        manifests: &[],
        program: Some("function-gpu-workspace"),
    },
    Package {
        kind: "configuration",
        name: "configuration-gpu-workspaces",
        folder: "configuration",
        manifests: &["xrds", "compositions"],
        program: None,
    },
];
