//! What the portal itself may do: it does not run with the right to become everybody.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::PostParams;
use kube::{Api, Client};

/// The resources that the portal may impersonate by name only. With all users, for example, a thief of the portal's
/// token could become a cluster administrator.
const UNBOUNDED: [&str; 3] = ["users", "groups", "serviceaccounts"];

/// Why the portal does not run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("ask the API server what the portal may do: {0}")]
    Ask(#[from] kube::Error),
    #[error(
        "the portal may impersonate all {0}: take the verb impersonate away from its ServiceAccount; \
         the manifests beside the portal's have what it needs"
    )]
    Unbounded(&'static str),
}

/// Refuses to run with the right to impersonate everybody of a kind.
pub(crate) async fn check(client: Client) -> Result<(), Error> {
    let reviews = Api::all(client);
    for resource in UNBOUNDED {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    resource: Some(resource.to_owned()),
                    verb: Some("impersonate".to_owned()),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let answer = reviews.create(&PostParams::default(), &review).await?;
        if answer.status.is_some_and(|status| status.allowed) {
            return Err(Error::Unbounded(resource));
        }
    }
    Ok(())
}
