//! The parts of the document, and the file that the setup script reads, as they are serialized.

use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Head<'a> {
    pub(super) ssh_pwauth: bool,
    pub(super) users: [User<'a>; 1],
}

#[derive(Serialize)]
pub(super) struct Certificates<'a> {
    pub(super) ca_certs: Trusted<'a>,
}

#[derive(Serialize)]
pub(super) struct Trusted<'a> {
    pub(super) trusted: &'a [String],
}

#[derive(Serialize)]
pub(super) struct Tail {
    pub(super) runcmd: Vec<Vec<&'static str>>,
}

#[derive(Serialize)]
pub(super) struct User<'a> {
    pub(super) name: &'a str,
    pub(super) lock_passwd: bool,
    pub(super) shell: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) sudo: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    pub(super) ssh_authorized_keys: &'a [String],
}

/// The file that the setup script reads.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Workspace<'a> {
    pub(super) owner: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) image_id: Option<&'a str>,
    pub(super) opencv_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) package_index_url: Option<&'a str>,
    /// The interpreter of the image from which the environment is made, from v3 on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) python: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pytorch_version: Option<&'a str>,
    /// The interpreter of the image that has PyTorch, before v3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pytorch_python: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pytorch_index_url: Option<&'a str>,
}
