//! A provider of identities (OIDC) for clusters that ask for one: dex, with a few people.
//!
//! dex is a part of the cluster and listens at the pods' gateway: the API server, the pods and the
//! host's browser reach it at one URL, with a certificate of the cluster's authority. The API server
//! starts before dex and fetches dex's keys when they are there.

use std::path::Path;

use serde_json::{Value, json};

use crate::layout::Layout;
use crate::network::Addresses;

/// The file with the API server's `AuthenticationConfiguration`.
pub const AUTHENTICATION: &str = "authentication.json";
/// The file with dex's configuration.
pub const CONFIGURATION: &str = "dex.json";
/// The certificate of dex, and that of the portal.
pub const CERTIFICATE: &str = "dex";
/// The certificate of what a browser of the host opens at the node's address.
pub const PORTAL_CERTIFICATE: &str = "portal";

/// The people that dex knows. Their addresses are `NAME@acme.io`, and their password is [`PASSWORD`].
const PEOPLE: &[(&str, &[&str])] = &[
    ("alice", &["vision", "everybody"]),
    ("bob", &["vision", "everybody"]),
    ("carol", &["platform"]),
    ("nobody", &["everybody"]),
];
/// The password of everybody. Only this machine reaches dex.
pub const PASSWORD: &str = "password";
/// bcrypt of it.
const HASH: &str = "$2a$10$2b2cU8CPhOTaGrs1HRQuAueS7JTT5ZHsHSzYiFPm1leZck7Mc8T4W";
/// The portal at dex.
pub const CLIENT: &str = "gpu-portal";
/// Its secret there.
pub const CLIENT_SECRET: &str = "the-secret-of-the-portal";
/// The port of the node at which the host's browser reaches the portal.
pub const PORTAL_PORT: u16 = 30443;

/// Where people reach the portal.
pub fn portal(addresses: Addresses) -> String {
    format!("https://{}:{PORTAL_PORT}", addresses.node())
}

/// The API server's `AuthenticationConfiguration`. The portal reads the same file.
pub fn authentication(addresses: Addresses, authority: &str) -> Value {
    json!({
        "apiVersion": "apiserver.config.k8s.io/v1",
        "kind": "AuthenticationConfiguration",
        "jwt": [{
            "issuer": {
                "url": addresses.issuer(),
                "audiences": [CLIENT],
                "certificateAuthority": authority,
            },
            "claimMappings": {
                "username": {"claim": "email", "prefix": ""},
                "groups": {"claim": "groups", "prefix": "acme:"},
            },
        }],
    })
}

/// dex's configuration.
pub(crate) fn configuration(layout: &Layout) -> Value {
    let files = layout.state.certificates().files(CERTIFICATE);
    let issuer = layout.addresses.issuer();
    let people = PEOPLE.iter().map(|(name, groups)| {
        json!({
            "email": format!("{name}@acme.io"),
            "hash": HASH,
            "username": name,
            "userID": name,
            "groups": groups,
        })
    });
    json!({
        "issuer": issuer,
        "storage": {"type": "memory"},
        "web": {
            "https": layout.addresses.identities(),
            "tlsCert": text(&files.certificate),
            "tlsKey": text(&files.key),
        },
        "oauth2": {"skipApprovalScreen": true, "passwordConnector": "local"},
        "enablePasswordDB": true,
        "staticPasswords": people.collect::<Vec<_>>(),
        "staticClients": [{
            "id": CLIENT,
            "name": "GPU portal",
            "secret": CLIENT_SECRET,
            "redirectURIs": [format!("{}/login/callback", portal(layout.addresses))],
        }],
    })
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
