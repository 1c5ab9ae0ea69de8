//! Filters and tags in the SDK's types.

use aws_sdk_ec2::types::{Filter, ResourceType, Tag, TagSpecification};

use crate::Tags;

pub(crate) fn filter(name: &str, values: impl Into<Vec<String>>) -> Filter {
    Filter::builder()
        .name(name)
        .set_values(Some(values.into()))
        .build()
}

pub(crate) fn tag_specification(resource: ResourceType, tags: &Tags) -> TagSpecification {
    let tags = tags
        .iter()
        .map(|(key, value)| Tag::builder().key(key).value(value).build());
    TagSpecification::builder()
        .resource_type(resource)
        .set_tags(Some(tags.collect()))
        .build()
}

pub(crate) fn tag_value<'a>(tags: &'a [Tag], key: &str) -> Option<&'a str> {
    tags.iter()
        .find(|tag| tag.key() == Some(key))
        .and_then(Tag::value)
}
