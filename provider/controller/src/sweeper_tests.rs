use api::managed::IDENTITY;
use api::pool::SpotPoolStatus;
use kube::ResourceExt;
use memory_api_server::ApiServer;

use super::*;
use crate::seals::SEALS;
use crate::simulation::pool_for_tests;

/// The UID that the pool had before the restore.
const FIRST: &str = "uid-before";

/// A pool of a backup. Its first UID has the instances, and it has another UID now.
fn restored() -> (SpotPool, Identity) {
    let mut pool = pool_for_tests();
    pool.metadata.uid = Some(FIRST.into());
    pool.status = None;
    let identity = SEALS.first(&pool);
    pool.metadata.uid = Some("uid-after".into());
    (pool, identity)
}

async fn listed(pool: &SpotPool) -> BTreeSet<String> {
    let server = ApiServer::default();
    let path = SpotPool::url_path(&(), pool.namespace().as_deref());
    let object = serde_json::to_value(pool).unwrap();
    server.put(&format!("{path}/{}", pool.name_any()), object);
    LiveOwners::for_tests(&server).pools().await.unwrap()
}

#[tokio::test]
async fn the_instances_of_a_restored_pool_are_no_orphans() {
    let (mut pool, identity) = restored();
    pool.metadata.annotations = Some([(IDENTITY.to_owned(), identity.sealed)].into());
    let owners = listed(&pool).await;
    assert!(owners.contains(FIRST), "{owners:?}");
}

/// The provider writes no annotation to a paused pool, so its status alone says who it was.
#[tokio::test]
async fn the_instances_of_a_restored_pool_that_lost_its_annotation_are_no_orphans() {
    let (mut pool, identity) = restored();
    let mut status = SpotPoolStatus::default();
    status.at_provider.pool_identity = Some(identity.sealed);
    pool.status = Some(status);
    let owners = listed(&pool).await;
    assert!(owners.contains(FIRST), "{owners:?}");
}

#[tokio::test]
async fn the_instances_of_a_pool_with_a_foreign_annotation_are_judged_by_its_uid() {
    let (mut pool, _) = restored();
    pool.metadata.annotations = Some([(IDENTITY.to_owned(), format!("{FIRST}.no-seal"))].into());
    assert_eq!(listed(&pool).await, ["uid-after".to_owned()].into());
}
