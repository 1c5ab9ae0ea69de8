//! The arguments of commands that connect to workspaces.

use std::path::PathBuf;

use clap::Args;

use crate::name::{Host, Name};

/// The arguments of `ssh`.
#[derive(Args, Debug)]
pub struct Ssh {
    /// Name of the workspace
    pub name: Name,
    /// Pod of the workspace, from 0
    #[arg(long, value_name = "N")]
    pub replica: Option<u16>,
    /// Start the workspace if it is stopped
    #[arg(long)]
    pub start: bool,
    /// Command to run there, after --
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// The arguments of `cp`.
#[derive(Args, Debug)]
pub struct Copy {
    /// Copy folders
    #[arg(long, short)]
    pub recursive: bool,
    /// File here, or NAME:PATH
    pub from: String,
    /// File here, or NAME:PATH
    pub to: String,
}

/// The arguments of `port-forward`.
#[derive(Args, Debug)]
pub struct PortForward {
    /// Name of the workspace
    pub name: Name,
    /// Port here and port there, for example 8888 or 9000:8888
    #[arg(required = true, value_name = "[LOCAL:]REMOTE")]
    pub ports: Vec<String>,
    /// Pod of the workspace, from 0
    #[arg(long, value_name = "N")]
    pub replica: Option<u16>,
}

/// The arguments of `jupyter`.
#[derive(Args, Debug)]
pub struct Jupyter {
    /// Name of the workspace
    pub name: Name,
    /// Port on this machine; default: a free one
    #[arg(long)]
    pub port: Option<u16>,
    /// Print the address and open no browser
    #[arg(long)]
    pub no_open: bool,
}

/// The arguments of `code`.
#[derive(Args, Debug)]
pub struct Code {
    /// Name of the workspace
    pub name: Name,
    /// Folder there
    #[arg(default_value = "/home/developer")]
    pub path: String,
    /// Program to open, for example code-insiders or cursor
    #[arg(long, default_value = "code", env = "DEVCTL_CODE")]
    pub program: String,
}

/// The arguments of `jetbrains`.
#[derive(Args, Debug)]
pub struct Jetbrains {
    /// Name of the workspace
    pub name: Name,
    /// Folder there
    #[arg(default_value = "/home/developer")]
    pub path: String,
    /// Print the link and open nothing
    #[arg(long)]
    pub no_open: bool,
}

/// The arguments of `config-ssh`.
#[derive(Args, Debug)]
pub struct ConfigSsh {
    /// Write the files; default: show what would change
    #[arg(long)]
    pub write: bool,
    /// Take devctl out of ssh's configuration
    #[arg(long)]
    pub remove: bool,
}

/// The arguments of `known-hosts`.
#[derive(Args, Debug)]
pub struct KnownHosts {
    /// Name of the workspace; default: all
    pub name: Option<Name>,
    /// Forget the keys of the workspace
    #[arg(long, requires = "name")]
    pub forget: bool,
}

/// The arguments of `proxy`.
#[derive(Args, Debug)]
pub struct Proxy {
    /// Host, for example my-dev.ws
    pub host: Host,
    /// Port of the workspace; always 22
    #[arg(default_value_t = 22)]
    pub port: u16,
    /// File with the host keys that ssh reads afterwards; default: devctl's own
    #[arg(long, value_name = "FILE")]
    pub known_hosts: Option<PathBuf>,
}
