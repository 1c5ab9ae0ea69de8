//! The EC2 API behind a narrow port.
//!
//! [`Ec2`] is all that the controller may ask of AWS; [`AwsEc2`] asks it through
//! aws-sdk-ec2, whose only user this crate is. [`connect`] builds one from
//! credentials and an endpoint. Every error is an [`Ec2Error`], classified by
//! one table.

mod adapter;
mod batcher;
mod batches;
mod connect;
mod credentials;
mod error;
mod events;
mod groups;
mod instances;
mod launch;
mod placement;
mod port;
mod profile;
mod sessions;
mod snapshots;
mod tagging;
mod template;
mod volumes;

pub use adapter::AwsEc2;
pub use connect::{connect, connect_events};
pub use credentials::{Access, AccessError, Credentials, Role, Token, WebIdentity};
pub use error::Ec2Error;
pub use events::{Event, Events, Message, SqsEvents};
pub use port::{
    Answer, Ec2, GroupRequest, Image, Known, LaunchPlace, LaunchRequest, SnapshotRequest, Subnet,
    TagKeys, Tags, TemplateRequest, VolumeRequest,
};
pub use profile::{ProfileError, StaticCredentials, parse_profile};
