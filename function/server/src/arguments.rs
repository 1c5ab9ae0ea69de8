//! The command line. Its flags are those of Crossplane's function specification and of Go's SDK.

use std::ffi::OsStr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use clap::builder::{BoolishValueParser, FalseyValueParser, OsStringValueParser, TypedValueParser};
use clap::{ArgAction, Parser, ValueEnum};
use jiff::Timestamp;
use rustls::pki_types::{DnsName, ServerName};

use crate::error::Error;

/// Serve a composition function
#[derive(Clone, Debug, Parser)]
pub struct Arguments {
    /// Log the decision of each call
    #[arg(short, long, env = "DEBUG", value_parser = FalseyValueParser::new(),
        action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true")]
    pub debug: bool,

    /// Network to listen on
    #[arg(long, value_enum, default_value = "tcp")]
    pub network: Network,

    /// Address to listen on for gRPC; [::] means IPv6 and IPv4
    #[arg(long, default_value = "[::]:9443")]
    pub address: String,

    /// Folder with tls.crt, tls.key and ca.crt for mTLS; changed files are read again
    #[arg(long, env = "TLS_SERVER_CERTS_DIR",
        value_parser = OsStringValueParser::new().map(PathBuf::from))]
    pub tls_certs_dir: Option<PathBuf>,

    /// Name that a client's certificate must have; without it, any certificate of the authority
    /// is accepted
    #[arg(long, env = "CLIENT_NAME", value_name = "NAME", value_parser = dns_name)]
    pub client_name: Option<ServerName<'static>>,

    /// Serve without TLS, even if --tls-certs-dir is set
    #[arg(long, value_parser = BoolishValueParser::new(),
        action = ArgAction::Set, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true")]
    pub insecure: bool,

    /// Largest request, in MB
    #[arg(
        long,
        env = "MAX_RECV_MESSAGE_SIZE",
        default_value = "4",
        value_name = "MB"
    )]
    pub max_recv_message_size: NonZeroU16,

    /// Address to listen on for /metrics; empty to serve no metrics
    #[arg(long, env = "METRICS_ADDRESS", default_value = ":8080")]
    pub metrics_address: String,

    /// Decide as of this time instead of the current time, to repeat a decision
    #[arg(long, value_name = "TIME")]
    pub now: Option<Timestamp>,
}

/// The kind of addresses to listen on, named as in Go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Network {
    /// IPv6 and IPv4.
    Tcp,
    /// IPv4 only.
    Tcp4,
    /// IPv6 only.
    Tcp6,
}

impl Arguments {
    /// The folder of the certificates; `None` means to serve without TLS.
    ///
    /// # Errors
    ///
    /// [`Error::NoTransport`] if neither a folder nor `--insecure` is given. Crossplane's function
    /// specification requires TLS unless it is switched off explicitly. [`Error::NoClientNames`] if
    /// clients need a name and cannot have one.
    pub fn certificates(&self) -> Result<Option<&Path>, Error> {
        if self.insecure {
            return match self.client_name {
                Some(_) => Err(Error::NoClientNames),
                None => Ok(None),
            };
        }
        // An empty environment variable counts as unset.
        let folder = self.tls_certs_dir.as_deref();
        folder
            .filter(|folder| folder.as_os_str() != OsStr::new(""))
            .map(Some)
            .ok_or(Error::NoTransport)
    }

    /// The address for the metrics; `None` means to serve no metrics.
    pub fn metrics_address(&self) -> Option<&str> {
        Some(self.metrics_address.as_str()).filter(|address| !address.is_empty())
    }
}

fn dns_name(text: &str) -> Result<ServerName<'static>, String> {
    let name = DnsName::try_from(text.to_owned());
    name.map(ServerName::DnsName)
        .map_err(|error| format!("{error}; Crossplane's is SERVICEACCOUNT.NAMESPACE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> Arguments {
        let program = ["function-gpu-workspace"];
        Arguments::try_parse_from(program.iter().chain(arguments)).unwrap()
    }

    #[test]
    fn a_function_without_flags_listens_where_crossplane_calls() {
        let arguments = parse(&[]);
        assert_eq!(arguments.address, "[::]:9443");
        assert_eq!(arguments.network, Network::Tcp);
        assert_eq!(arguments.metrics_address(), Some(":8080"));
        assert_eq!(arguments.max_recv_message_size.get(), 4);
        assert!(!arguments.debug && !arguments.insecure);
    }

    #[test]
    fn insecure_wins_over_certificates() {
        let arguments = parse(&["--tls-certs-dir=/tls", "--insecure"]);
        assert!(matches!(arguments.certificates(), Ok(None)));
        let arguments = parse(&["--tls-certs-dir=/tls", "--insecure=false"]);
        assert!(matches!(arguments.certificates(), Ok(Some(_))));
    }

    #[test]
    fn serving_without_tls_needs_the_insecure_flag() {
        for arguments in [&[][..], &["--tls-certs-dir="], &["--insecure=false"]] {
            let arguments = parse(arguments);
            let refused = arguments.certificates();
            assert!(matches!(refused, Err(Error::NoTransport)), "{arguments:?}");
        }
    }

    #[test]
    fn clients_without_tls_cannot_be_told_apart() {
        let arguments = parse(&["--insecure", "--client-name=crossplane.crossplane-system"]);
        assert!(matches!(
            arguments.certificates(),
            Err(Error::NoClientNames)
        ));
    }

    #[test]
    fn an_empty_name_switches_off_no_check_of_clients() {
        for wrong in ["--client-name=", "--client-name=a name"] {
            assert!(Arguments::try_parse_from(["function", wrong]).is_err());
        }
    }

    #[test]
    fn flags_are_written_as_in_go() {
        assert!(parse(&["-d"]).debug);
        assert!(parse(&["--debug=true"]).debug);
        assert!(!parse(&["--debug=false"]).debug);
        assert_eq!(parse(&["--network", "tcp4"]).network, Network::Tcp4);
        assert_eq!(parse(&["--metrics-address="]).metrics_address(), None);
    }
}
