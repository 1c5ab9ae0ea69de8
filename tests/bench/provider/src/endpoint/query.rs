//! Requests in EC2's query protocol: `Action=…&Filter.1.Value.2=…`.

use std::collections::BTreeMap;

use provider_aws::Tags;

/// A request's parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

/// A filter of a `Describe…` call. A resource must have one of the filter's values, and must pass
/// every filter of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filter {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
}

impl Query {
    /// Parses a body of the type `application/x-www-form-urlencoded`.
    pub(crate) fn parse(body: &[u8]) -> Self {
        Self(form_urlencoded::parse(body).into_owned().collect())
    }

    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    /// The value of a key, if it is a number.
    pub(crate) fn number(&self, key: &str) -> Option<usize> {
        self.text(key)?.parse().ok()
    }

    /// The values of `key.1`, `key.2` and so on.
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        let numbered = |n| self.text(&format!("{key}.{n}"));
        (1..).map_while(numbered).map(str::to_owned).collect()
    }

    /// The prefixes `key.1`, `key.2` and so on of a list of structures.
    pub(crate) fn items<'a>(&'a self, key: &str) -> impl Iterator<Item = String> + use<'a> {
        let key = key.to_owned();
        (1..)
            .map(move |n| format!("{key}.{n}"))
            .take_while(|item| self.has(&format!("{item}.")))
    }

    pub(crate) fn filters(&self) -> Vec<Filter> {
        let items = self.items("Filter");
        let filters = items.filter_map(|item| {
            Some(Filter {
                name: self.text(&format!("{item}.Name"))?.to_owned(),
                values: self.list(&format!("{item}.Value")),
            })
        });
        filters.collect()
    }

    /// The tags that a call which creates resources gives to this kind of resource.
    pub(crate) fn tags_of(&self, resource: &str) -> Tags {
        self.items("TagSpecification")
            .filter(|item| self.text(&format!("{item}.ResourceType")) == Some(resource))
            .flat_map(|item| self.tags(&item))
            .collect()
    }

    /// The tags `prefix.Tag.1` and so on.
    pub(crate) fn tags(&self, prefix: &str) -> Tags {
        let key = if prefix.is_empty() {
            "Tag".to_owned()
        } else {
            format!("{prefix}.Tag")
        };
        let pair = |item: String| {
            let [key, value] = ["Key", "Value"].map(|part| self.text(&format!("{item}.{part}")));
            Some((key?.to_owned(), value.unwrap_or_default().to_owned()))
        };
        self.items(&key).filter_map(pair).collect()
    }

    fn has(&self, prefix: &str) -> bool {
        let mut from = self.0.range(prefix.to_owned()..);
        from.next().is_some_and(|(key, _)| key.starts_with(prefix))
    }
}

impl Filter {
    /// Whether a resource with these tags passes the filter; `None` if it is not a filter by tag.
    pub(crate) fn passes_tags(&self, tags: &Tags) -> Option<bool> {
        let key = self.name.strip_prefix("tag:")?;
        let found = tags.get(key);
        Some(found.is_some_and(|value| self.values.contains(value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_as_the_sdk_writes_it_is_read() {
        let query = Query::parse(
            b"Action=DescribeInstances&Filter.1.Name=tag%3Aa.b&Filter.1.Value.1=x&\
              Filter.1.Value.2=y+z&Filter.2.Name=instance-id&Filter.2.Value.1=i-1&MaxResults=1000",
        );
        let [first, second] = &query.filters()[..] else {
            panic!("two filters")
        };
        assert_eq!(first.values, ["x", "y z"]);
        assert_eq!(second.name, "instance-id");
        assert_eq!(query.number("MaxResults"), Some(1000));
        let tags = |value: &str| Tags::from([("a.b".to_owned(), value.to_owned())]);
        assert_eq!(first.passes_tags(&tags("y z")), Some(true));
        assert_eq!(first.passes_tags(&tags("other")), Some(false));
        assert_eq!(second.passes_tags(&tags("x")), None);
    }

    #[test]
    fn the_tenth_item_follows_the_ninth() {
        let form: Vec<String> = (1..=12).map(|n| format!("Id.{n}=v{n}")).collect();
        let query = Query::parse(form.join("&").as_bytes());
        assert_eq!(query.list("Id").len(), 12);
        let tags = Query::parse(
            b"TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=k&\
              TagSpecification.1.Tag.1.Value=v&TagSpecification.2.ResourceType=volume",
        );
        assert_eq!(tags.tags_of("instance")["k"], "v");
        assert!(tags.tags_of("volume").is_empty());
    }
}
