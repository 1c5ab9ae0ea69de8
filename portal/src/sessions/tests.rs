use jiff::SignedDuration;
use kube::api::ListParams;
use memory_api_server::ApiServer;

use super::*;

const LIMITS: &str = r#"{"longest": "12h", "idle": "1h", "groupsEvery": "15m"}"#;

/// A replica of the portal that has not read the Secrets yet.
fn replica(server: &ApiServer) -> Sessions {
    Sessions {
        secrets: Api::namespaced(server.client(), "portal"),
        limits: serde_json::from_str(LIMITS).unwrap(),
        known: Arc::default(),
    }
}

/// Reads the Secrets as they are now.
async fn read(sessions: &Sessions) {
    for secret in sessions.secrets.list(&ListParams::default()).await.unwrap() {
        sessions.take(secret);
    }
}

/// Two replicas that know a session of one person, and its cookie.
async fn two_replicas() -> (Sessions, Sessions, String) {
    let server = ApiServer::default();
    let (one, other) = (replica(&server), replica(&server));
    let cookie = one.begin(ada(), None, start()).await.unwrap().value();
    read(&other).await;
    (one, other, cookie)
}

fn ada() -> Person {
    Person {
        user: "ada".into(),
        groups: vec!["team-vision".into()],
        email: None,
    }
}

fn start() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn after(minutes: i64) -> Timestamp {
    start() + SignedDuration::from_mins(minutes)
}

#[tokio::test]
async fn an_unused_session_ends_and_a_used_one_goes_on() {
    let server = ApiServer::default();
    let sessions = replica(&server);
    let (unused, used) = (
        sessions.begin(ada(), None, start()).await.unwrap().value(),
        sessions.begin(ada(), None, start()).await.unwrap().value(),
    );
    assert!(sessions.look(&used, Look::Uses, after(40)).is_some());
    // An open page asks whether its session lasts. That is no use.
    assert!(sessions.look(&unused, Look::Looks, after(40)).is_some());
    assert!(sessions.look(&unused, Look::Looks, after(70)).is_none());
    assert!(sessions.look(&used, Look::Looks, after(70)).is_some());
}

#[tokio::test]
async fn a_session_ends_after_its_longest_time_although_it_is_used() {
    let server = ApiServer::default();
    let sessions = replica(&server);
    let cookie = sessions.begin(ada(), None, start()).await.unwrap().value();
    for minutes in (0..12 * 60).step_by(30) {
        assert!(
            sessions.look(&cookie, Look::Uses, after(minutes)).is_some(),
            "after {minutes} minutes"
        );
    }
    assert!(sessions.look(&cookie, Look::Uses, after(12 * 60)).is_none());
}

#[tokio::test]
async fn the_portal_asks_for_a_persons_groups_again_and_only_one_replica_does() {
    let (one, other, cookie) = two_replicas().await;
    assert!(!one.begins_to_renew(&cookie, after(14)).await, "too early");
    assert!(one.begins_to_renew(&cookie, after(15)).await);
    assert!(!one.begins_to_renew(&cookie, after(15)).await, "it did");
    // The other replica has not read yet that the first one asks.
    assert!(!other.begins_to_renew(&cookie, after(15)).await);
}

#[tokio::test]
async fn changed_groups_reach_every_replica() {
    let (one, other, cookie) = two_replicas().await;
    let mut session = one.look(&cookie, Look::Uses, start()).unwrap().session;
    session.person.groups = vec!["team-speech".into()];
    one.renew(&cookie, &session).await.unwrap();
    read(&other).await;
    for replica in [one, other] {
        let seen = replica.look(&cookie, Look::Looks, start()).unwrap();
        assert_eq!(seen.session.person.groups, ["team-speech"]);
    }
}

#[tokio::test]
async fn a_person_who_signs_out_has_no_session_and_no_secret() {
    let server = ApiServer::default();
    let sessions = replica(&server);
    let cookie = sessions.begin(ada(), None, start()).await.unwrap().value();
    let over = sessions.look(&cookie, Look::Looks, start()).unwrap().over;
    sessions.end(&cookie).await.unwrap();
    assert!(*over.borrow(), "open pages learn of it");
    assert!(sessions.look(&cookie, Look::Uses, start()).is_none());
    let secrets = sessions.secrets.list(&ListParams::default()).await;
    assert_eq!(secrets.unwrap().items.len(), 0);
}
