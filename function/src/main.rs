//! `function-gpu-workspace`: serves the composition function until SIGTERM.

#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test fails by panicking"))]

mod preview;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use clap::builder::{BoolishValueParser, NonEmptyStringValueParser};
use clap::{ArgAction, Parser, Subcommand};
use function_gpu_workspace::kinds::{self, KINDS};
use function_runtime::request::Request;
use function_runtime::response::Response;
use function_sdk_rust::logging;
use function_workspace::spending::{Series, Spending};
use prometheus_client::collector::Collector;
use tracing::info;

/// A call makes thousands of small allocations and frees them together. mimalloc is fast at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Composition function: a GPU workspace claim becomes desired resources.
#[derive(Parser)]
#[command(name = "function-gpu-workspace", version)]
#[command(args_conflicts_with_subcommands = true)]
struct Options {
    #[command(subcommand)]
    command: Option<Command>,

    #[command(flatten)]
    server: function_server::Arguments,

    /// EnvironmentConfig with limits that no Composition can loosen. Without it there are none
    #[arg(long, env = "LIMITS", value_name = "NAME",
        value_parser = NonEmptyStringValueParser::new())]
    limits: Option<String>,

    /// Show in /metrics what each owner spends in each namespace, instead of totals
    #[arg(long, env = "METRICS_BY_OWNER", value_parser = BoolishValueParser::new(),
        action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true")]
    metrics_by_owner: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Show what another policy would do to the workspaces of a cluster; it changes nothing
    Preview(preview::Options),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Options {
        command,
        server,
        limits,
        metrics_by_owner,
    } = Options::parse();
    if let Some(Command::Preview(options)) = command {
        return preview::run(&options);
    }
    logging::configure(server.debug);
    if let Some(limits) = &limits {
        info!(limits, "no Composition can loosen the limits");
    }
    let kinds = limits.map_or(KINDS, kinds::limited);
    let series = if metrics_by_owner {
        Series::ByOwner
    } else {
        Series::Total
    };
    let spending = Arc::new(Spending::new(series));
    let observed = Arc::clone(&spending);
    let observe = Box::leak(Box::new(move |request: &Request, response: &Response| {
        observed.observe(request, response, Instant::now());
    }));
    let collectors: Vec<Box<dyn Collector>> = vec![Box::new(spending)];
    match function_server::run(kinds, observe, collectors, &server).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("function-gpu-workspace: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_of_server_and_kinds_fit_together() {
        Options::command().debug_assert();
    }

    #[test]
    fn owners_are_named_only_on_request() {
        let parsed = |arguments: &[&str]| {
            let arguments = ["function"].iter().chain(arguments);
            Options::try_parse_from(arguments).unwrap().metrics_by_owner
        };
        assert!(!parsed(&[]) && !parsed(&["--metrics-by-owner=false"]));
        assert!(parsed(&["--metrics-by-owner"]));
    }

    #[test]
    fn an_empty_name_switches_off_no_limit() {
        let parsed = |argument| Options::try_parse_from(["function", argument]);
        assert_eq!(parsed("--limits=a").unwrap().limits.as_deref(), Some("a"));
        assert!(parsed("--limits=").is_err());
    }
}
