//! Lists in pages.
//!
//! A pool takes some 30 KiB of memory with its `managedFields`, and its metadata alone half of that. So
//! the list of all pools of a large control plane would need more memory than all that the provider
//! keeps of them.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ListMeta;
use kube::api::ListParams;

/// The most objects of a page.
const PAGE: u32 = 100;

/// The pages of a list. The API server answers all of them as of the first one. It keeps that state for
/// some minutes; after that, the next page is an error.
#[derive(Debug)]
pub struct Pages {
    next: Option<ListParams>,
}

impl Pages {
    /// The pages of the objects that `params` selects.
    pub fn of(params: ListParams) -> Self {
        let next = Some(params.limit(PAGE));
        Self { next }
    }

    /// What asks for the next page. `None` after the last one.
    pub fn next(&self) -> Option<&ListParams> {
        self.next.as_ref()
    }

    /// Notes that the API server answered the next page, with this metadata.
    pub fn read(&mut self, answer: ListMeta) {
        let token = answer.continue_.filter(|token| !token.is_empty());
        self.next = self.next.take().filter(|_| token.is_some());
        if let Some(params) = &mut self.next {
            params.continue_token = token;
        }
    }
}

#[cfg(test)]
mod tests {
    use kube::Api;
    use serde_json::json;

    use super::*;
    use crate::testing::{Thing, thing};
    use memory_api_server::ApiServer;

    fn server(things: u32) -> ApiServer {
        let server = ApiServer::default();
        for number in 0..things {
            let path = format!("/apis/example.org/v1/namespaces/default/things/{number:04}");
            server.put(&path, json!(thing(&format!("{number:04}"), &[])));
        }
        server
    }

    async fn listed(server: &ApiServer) -> kube::Result<Vec<String>> {
        let api: Api<Thing> = Api::all(server.client());
        let mut names = Vec::new();
        let mut pages = Pages::of(ListParams::default());
        while let Some(params) = pages.next() {
            let page = api.list_metadata(params).await?;
            pages.read(page.metadata);
            names.extend(page.items.into_iter().filter_map(|one| one.metadata.name));
        }
        Ok(names)
    }

    #[tokio::test]
    async fn a_thousand_pools_are_listed_without_one_too_many_at_a_time() {
        for things in [0, 1, PAGE, PAGE + 1, 1000] {
            let server = server(things);
            let expected: Vec<_> = (0..things).map(|number| format!("{number:04}")).collect();
            assert_eq!(listed(&server).await.unwrap(), expected);
            assert!(server.longest_list() <= PAGE as usize, "{things}");
        }
    }

    #[tokio::test]
    async fn a_list_that_ends_early_is_an_error_and_not_a_shorter_list() {
        let server = server(2 * PAGE);
        server.refuse_after_lists(1);
        assert!(listed(&server).await.is_err());
    }
}
