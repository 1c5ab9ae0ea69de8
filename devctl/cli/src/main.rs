//! The program `devctl`, which is also `kubectl gpuws`. See docs/devctl.md.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

use std::process::ExitCode;

use bastion_core::calls::Remote;
use clap::Parser;
use devctl_core::commands;
use devctl_core::commands::call::Call;
use devctl_core::grammar::{Arguments, Command};
use devctl_core::host::{Api, Host, Reach};
use devctl_core::output::Format;
use devctl_core::problem::{Code, Problem};

mod bastion;
mod clock;
mod cluster;
mod completion;
mod files;
mod programs;
mod reach;
mod settings;

/// The exit code after Ctrl-C: 128 and the number of SIGINT, as in shells.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    completion::answer();
    let mut arguments = Arguments::parse();
    let terminal = devctl_terminal::Screen::default();
    if let Command::Completion(given) = &arguments.command {
        return ExitCode::from(ended(
            &terminal,
            Format::Table,
            completion::script(&terminal, given.shell),
        ));
    }
    if let Command::Manual(given) = &arguments.command {
        return ExitCode::from(ended(&terminal, Format::Table, manual(&given.folder)));
    }
    let format = arguments.command.format();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            let problem = Problem::new(Code::Failed, "Runtime", error.to_string());
            return ExitCode::from(ended(&terminal, format, Err(problem)));
        }
    };
    let done = runtime.block_on(async {
        tokio::select! {
            done = run(&terminal, &mut arguments) => done,
            Ok(()) = tokio::signal::ctrl_c() => {
                terminal.interrupted();
                Ok(INTERRUPTED)
            }
        }
    });
    let code = ended(&terminal, format, done);
    // A thread that reads standard input would keep the runtime from ending.
    runtime.shutdown_background();
    ExitCode::from(code)
}

async fn run(terminal: &devctl_terminal::Screen, arguments: &mut Arguments) -> Result<u8, Problem> {
    let files = files::Disk::new()?;
    settings::fill_in(&files, arguments)?;
    let (api, reach) = way(arguments).await?;
    let host = Host {
        api: api.as_ref(),
        terminal,
        programs: &programs::Installed,
        reach: reach.as_ref(),
        files: &files,
        clock: &clock::Machine,
    };
    let call = Call {
        host,
        shared: &arguments.shared,
    };
    commands::run(call, &arguments.command).await
}

/// The API server, and the way to workspaces: through a bastion, or by a kubeconfig.
async fn way(arguments: &Arguments) -> Result<(Box<dyn Api>, Box<dyn Reach>), Problem> {
    let shared = &arguments.shared;
    let needs_cluster = arguments.command.needs_cluster();
    if let Some(bastion) = shared.bastion.as_deref().filter(|_| needs_cluster) {
        let door = bastion::Door::open(shared, bastion).await?;
        return Ok((
            Box::new(Remote(door)),
            Box::new(bastion::Through::new(shared, bastion)),
        ));
    }
    match cluster::open(shared).await {
        Err(problem) if needs_cluster => Err(problem),
        Err(_) => Ok((
            Box::new(Remote(cluster::Away)),
            Box::new(reach::Network::new(None)),
        )),
        Ok(server) => {
            let reach = reach::Network::new(Some(server.client()));
            Ok((Box::new(server), Box::new(reach)))
        }
    }
}

/// Reports a problem, and gives the exit code.
fn ended(terminal: &devctl_terminal::Screen, format: Format, done: Result<u8, Problem>) -> u8 {
    match done {
        Ok(code) => code,
        Err(problem) => terminal.report(format, &problem),
    }
}

fn manual(folder: &std::path::Path) -> Result<u8, Problem> {
    use clap::CommandFactory;
    let written = clap_mangen::generate_to(Arguments::command(), folder);
    written.map_err(|error| {
        Problem::new(
            Code::Failed,
            "Manual",
            format!("{}: {error}", folder.display()),
        )
    })?;
    Ok(0)
}
