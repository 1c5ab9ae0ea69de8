//! The EC2 API behind a narrow port.
//!
//! [`Ec2`] lists every call that the controller may make to AWS. [`AwsEc2`] implements it with
//! aws-sdk-ec2; no other crate uses that SDK. [`connect`] builds a client from credentials and an
//! endpoint. Every error is an [`Ec2Error`], and one table gives its class.

mod adapter;
mod batcher;
mod batches;
mod bucket;
mod connect;
mod credentials;
mod error;
mod events;
mod group_rules;
mod groups;
mod image_builder;
mod instances;
mod launch;
mod placement;
mod port;
mod prices;
mod profile;
#[cfg(test)]
mod recorded;
mod sessions;
mod snapshots;
mod tagging;
mod template;
mod volumes;
#[cfg(test)]
mod wire;

pub use adapter::AwsEc2;
pub use connect::{connect, connect_events};
pub use credentials::{Access, AccessError, Credentials, Role, Token, WebIdentity};
pub use error::Ec2Error;
pub use events::{Event, Events, Message, SqsEvents};
pub use image_builder::{ImageBuilder, ImageProgress, MachineRequest};
pub use port::{
    Answer, Ec2, GroupRequest, Image, Known, LaunchPlace, LaunchRequest, SnapshotRequest, Subnet,
    TagKeys, Tags, TemplateRequest, VolumeRequest,
};
pub use profile::{ProfileError, StaticCredentials, parse_profile};
