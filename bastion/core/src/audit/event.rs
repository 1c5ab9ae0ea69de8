//! The events of the audit log.

use serde::{Deserialize, Serialize};

/// What happened. docs/bastion.md lists the events for people.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(tag = "event", rename_all_fields = "camelCase")]
pub enum Event {
    /// The broker started.
    #[serde(rename = "bastion.started")]
    Started {
        /// The version of the program.
        version: String,
        /// How many bytes of an unfinished line were cut off the log. A crash leaves them.
        unfinished_bytes: u64,
    },
    /// A file of the log begins. The file before has reached its size.
    #[serde(rename = "log.continued")]
    Continued {
        /// The sessions that are open: the id and the person of each.
        open: Vec<(String, String)>,
    },
    /// The log can be written again. Meanwhile the broker did nothing for anybody.
    #[serde(rename = "log.writable")]
    Writable,
    /// A person logged in.
    #[serde(rename = "session.opened")]
    SessionOpened {
        /// The person's namespace.
        namespace: String,
        /// The address from which they connected.
        source: String,
        /// The key or the certificate by which they logged in.
        credential: String,
    },
    /// A person with the right key is not let in now.
    #[serde(rename = "session.refused")]
    SessionRefused {
        /// Why, in a word.
        reason: String,
    },
    /// A session ended.
    #[serde(rename = "session.closed")]
    SessionClosed {
        /// Why, in a word.
        reason: String,
    },
    /// The broker was killed while the session was open.
    #[serde(rename = "session.lost")]
    SessionLost,
    /// A person gives a command. It is written before the command runs.
    #[serde(rename = "command")]
    Command {
        /// The words of the command, in full.
        words: Vec<String>,
    },
    /// A command line that has no words.
    #[serde(rename = "command.refused")]
    CommandRefused {
        /// Why.
        reason: String,
    },
    /// The broker asks the API server as the person. It is written before the request is sent.
    #[serde(rename = "api.request")]
    ApiRequest {
        /// The id that the API server's own audit log has, too.
        audit_id: String,
        /// The verb of HTTP.
        method: String,
        /// The path and the query.
        path: String,
    },
    /// The broker makes a certificate with which the person logs in to workspaces. It is written before ssh
    /// has it.
    #[serde(rename = "certificate.issued")]
    CertificateIssued {
        /// The name of the certificate, which sshd of the workspace writes to its log.
        id: String,
        /// How many seconds it is valid.
        seconds: u64,
    },
    /// The broker connects to a workspace. It is written before it connects.
    #[serde(rename = "connection.opened")]
    ConnectionOpened {
        /// The workspace.
        workspace: String,
        /// The UID of its claim.
        uid: String,
        /// The pod or the instance.
        node: String,
        /// The address and the port.
        address: String,
    },
    /// The broker does not connect to a workspace.
    #[serde(rename = "connection.refused")]
    ConnectionRefused {
        /// The host that was asked for.
        host: String,
        /// Why, in a word.
        reason: String,
    },
    /// A connection ended.
    #[serde(rename = "connection.closed")]
    ConnectionClosed {
        /// Bytes to the workspace; none if the session ended without telling them.
        #[serde(skip_serializing_if = "Option::is_none")]
        up: Option<u64>,
        /// Bytes from the workspace.
        #[serde(skip_serializing_if = "Option::is_none")]
        down: Option<u64>,
    },
}
