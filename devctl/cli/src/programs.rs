//! Other programs of this machine.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

use async_trait::async_trait;
use devctl_core::host::{Piped, Program, Programs, Ran};
use devctl_terminal::programs;
use futures::stream::BoxStream;

/// The programs that the user has installed.
pub(crate) struct Installed;

#[async_trait]
impl Programs for Installed {
    /// The program takes devctl's place, so signals and the exit code are its own.
    async fn run(&self, program: &Program) -> io::Result<i32> {
        Err(command(program).exec())
    }

    async fn capture(&self, program: &Program) -> io::Result<Ran> {
        programs::capture(command(program)).await
    }

    async fn piped(&self, program: &Program) -> io::Result<Piped> {
        programs::piped(command(program)).await
    }

    fn lines(&self, program: &Program) -> io::Result<BoxStream<'static, io::Result<String>>> {
        programs::lines(command(program))
    }

    fn own_path(&self) -> io::Result<PathBuf> {
        std::env::current_exe()
    }

    fn is_installed(&self, name: &str) -> bool {
        let is_program = |path: PathBuf| path.join(name).is_file();
        if name.contains('/') {
            return PathBuf::from(name).is_file();
        }
        std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(is_program))
    }
}

fn command(program: &Program) -> std::process::Command {
    let mut command = std::process::Command::new(&program.name);
    command.args(&program.arguments);
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command
}
