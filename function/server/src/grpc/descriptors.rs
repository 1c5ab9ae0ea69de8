//! The descriptors for gRPC reflection: both versions of the protocol, and health.

use function_sdk_rust::proto::FILE_DESCRIPTOR_SET;
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorProto, FileDescriptorSet};
use tonic_reflection::server::{Builder, Error};

const V1: &str = "apiextensions.fn.proto.v1";
const V1BETA1: &str = "apiextensions.fn.proto.v1beta1";

/// A reflection service for all services of the server.
///
/// # Errors
///
/// The SDK's descriptors cannot be read.
pub fn reflection() -> Result<Builder<'static>, Error> {
    Ok(Builder::configure()
        .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
        .register_file_descriptor_set(v1beta1()?)
        .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET))
}

/// The descriptors of v1beta1. They are those of v1 with another package name: Crossplane generates
/// v1beta1 from v1 in the same way.
fn v1beta1() -> Result<FileDescriptorSet, Error> {
    let known = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).map_err(Error::DecodeError)?;
    let protocol = known.file.into_iter().filter(|file| file.package() == V1);
    let file: Vec<_> = protocol.map(moved).collect();
    if file.is_empty() {
        let missing = format!("the SDK's descriptors have no package {V1}");
        return Err(Error::InvalidFileDescriptorSet(missing));
    }
    Ok(FileDescriptorSet { file })
}

fn moved(mut file: FileDescriptorProto) -> FileDescriptorProto {
    file.package = Some(V1BETA1.to_owned());
    file.name = file.name.map(|name| name.replace("v1/", "v1beta1/"));
    if let Some(options) = &mut file.options {
        options.go_package = options
            .go_package
            .as_ref()
            .map(|package| package.replace("/v1", "/v1beta1"));
    }
    file.message_type.iter_mut().for_each(move_message);
    for method in file.service.iter_mut().flat_map(|s| &mut s.method) {
        move_type(&mut method.input_type);
        move_type(&mut method.output_type);
    }
    file
}

fn move_message(message: &mut DescriptorProto) {
    for field in &mut message.field {
        move_type(&mut field.type_name);
    }
    message.nested_type.iter_mut().for_each(move_message);
}

/// Moves a type name to the other package. Type names are full names with a leading dot.
fn move_type(name: &mut Option<String>) {
    if let Some(name) = name
        && let Some(local) = name
            .strip_prefix('.')
            .and_then(|name| name.strip_prefix(V1))
            .and_then(|name| name.strip_prefix('.'))
    {
        *name = format!(".{V1BETA1}.{local}");
    }
}
