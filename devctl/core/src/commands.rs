//! What each command does.

use crate::grammar::Command;
use crate::problem::Problem;

mod account;
pub mod call;
mod config_ssh;
mod connect;
mod cost;
mod create;
mod delete;
mod doctor;
mod git;
mod jobs;
mod jupyter;
mod lifecycle;
mod list;
mod monitor;
mod proxy;
mod ready;
mod waiting;
mod why;

use call::Call;

/// Runs a command and returns its exit code.
pub async fn run(call: Call<'_>, command: &Command) -> Result<u8, Problem> {
    match command {
        Command::Create(given) => create::create(call, given).await,
        Command::List(given) => list::list(call, given).await,
        Command::Show(given) => list::show(call, given).await,
        Command::Why(given) => why::why(call, given).await,
        Command::Flavors(given) => account::flavors(call, *given).await,
        Command::Whoami(given) => account::whoami(call, *given).await,
        Command::Cost(given) => cost::cost(call, given).await,
        Command::Ssh(given) => connect::ssh(call, given).await,
        Command::Run(given) => jobs::run(call, given).await,
        Command::Jobs(given) => jobs::jobs(call, given).await,
        Command::Logs(given) => jobs::logs(call, given).await,
        Command::Cancel(given) => jobs::cancel(call, given).await,
        Command::Monitor(given) => monitor::monitor(call, given).await,
        Command::Cp(given) => connect::copy(call, given).await,
        Command::PortForward(given) => connect::port_forward(call, given).await,
        Command::Jupyter(given) => jupyter::jupyter(call, given).await,
        Command::Code(given) => connect::code(call, given).await,
        Command::Jetbrains(given) => connect::jetbrains(call, given).await,
        Command::Stop(given) => lifecycle::stop(call, given).await,
        Command::Start(given) => lifecycle::start(call, given).await,
        Command::Extend(given) => lifecycle::extend(call, given).await,
        Command::Delete(given) => delete::delete(call, given).await,
        Command::ConfigSsh(given) => config_ssh::config_ssh(call, given),
        Command::KnownHosts(given) => config_ssh::known_hosts(call, given),
        Command::Proxy(given) => proxy::proxy(call, given).await,
        Command::Doctor(given) => doctor::doctor(call, given).await,
        // The host answers these: they print its own grammar.
        Command::Completion(_) | Command::Manual(_) => Ok(0),
    }
}
