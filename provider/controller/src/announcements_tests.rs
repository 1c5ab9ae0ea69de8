use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use provider_aws::Message;
use provider_core::{Market, Notice};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::*;
use crate::region::Snapshot;
use crate::shared::Share;
use crate::simulation::{ec2_for_tests, instance_for_tests};

/// A queue with one warning about `i-7`, which is read once. Counts its readers.
#[derive(Default)]
struct OneWarning {
    is_read: AtomicU32,
    readers: AtomicU32,
    most_readers: AtomicU32,
    is_refused: bool,
}

#[async_trait]
impl Events for OneWarning {
    async fn receive(&self) -> Result<Vec<Message>, Ec2Error> {
        let readers = self.readers.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_readers.fetch_max(readers, Ordering::SeqCst);
        tokio::task::yield_now().await;
        self.readers.fetch_sub(1, Ordering::SeqCst);
        if self.is_refused {
            return Err(Ec2Error {
                operation: "ReceiveMessage",
                code: "AccessDenied".into(),
                message: String::new(),
                class: ErrorClass::Denied,
            });
        }
        if self.is_read.fetch_add(1, Ordering::SeqCst) > 0 {
            return Ok(Vec::new());
        }
        let notice = Notice {
            kind: NoticeKind::Interruption,
            at: Timestamp::now(),
        };
        let event = Event {
            instance_id: "i-7".into(),
            notice: Some(notice),
        };
        Ok(vec![Message {
            receipt: "r".into(),
            event: Some(event),
        }])
    }

    async fn done(&self, _: Vec<String>) -> Result<(), Ec2Error> {
        Ok(())
    }
}

/// Two regions of one account, with different credentials. The second one has a pool with `i-7`.
struct TwoConfigurations {
    open: Arc<OpenRegions>,
    first: Arc<Region>,
    second: Arc<Region>,
}

impl TwoConfigurations {
    fn new() -> Self {
        let share = Share::default();
        let name = "us-east-1";
        let region = || {
            Region::new(
                ec2_for_tests(),
                name.into(),
                share.clone(),
                Timestamp::now(),
            )
        };
        let (first, second) = (Arc::new(region()), Arc::new(region()));
        second.register("uid", ObjectRef::new("pool").within("team"));
        let open = Arc::<OpenRegions>::default();
        for (number, region) in [(1, &first), (2, &second)] {
            let instances =
                BTreeMap::from([("uid".to_owned(), vec![Arc::new(instance_for_tests("i-7"))])]);
            let snapshot = Snapshot {
                instances: Arc::new(instances),
                ..Snapshot::default()
            };
            drop(region.publish(Ok(Arc::new(snapshot)), Timestamp::now()));
            let key = ([number; 32], name.to_owned());
            open.by_key().insert(key, region.clone());
        }
        Self {
            open,
            first,
            second,
        }
    }

    fn queue(&self, events: Arc<OneWarning>, turn: &Turn) -> Queue {
        Queue {
            events,
            turn: turn.clone(),
            open: self.open.clone(),
        }
    }
}

/// The next pool that is woken. It fails if none is.
async fn next(woken: &mut UnboundedReceiver<ObjectRef<SpotPool>>) -> ObjectRef<SpotPool> {
    let next = tokio::time::timeout(Duration::from_secs(5), woken.recv());
    next.await.unwrap().unwrap()
}

#[tokio::test]
async fn a_warning_that_one_configuration_reads_reaches_the_pools_of_another() {
    let regions = TwoConfigurations::new();
    let (wake, mut woken) = mpsc::unbounded_channel();
    let queue = regions.queue(Arc::default(), &Turn::default());
    tokio::spawn(follow(Arc::downgrade(&regions.first), queue, wake));
    let pool = next(&mut woken).await;
    assert_eq!(pool.name, "pool");
    assert!(regions.second.notices().all().contains_key("i-7"));
    let unavailable = lock(&regions.second.unavailable()).clone();
    let offering = instance_for_tests("i-7").offering;
    let mut among = unavailable.among(std::slice::from_ref(&offering), Timestamp::now());
    assert!(among.next().is_some(), "the next one is bought elsewhere");
}

#[tokio::test]
async fn two_configurations_read_their_common_queue_one_after_the_other() {
    let regions = TwoConfigurations::new();
    let (wake, mut woken) = mpsc::unbounded_channel();
    let (events, turn) = (Arc::<OneWarning>::default(), Turn::default());
    for region in [&regions.first, &regions.second] {
        let queue = regions.queue(events.clone(), &turn);
        tokio::spawn(follow(Arc::downgrade(region), queue, wake.clone()));
    }
    next(&mut woken).await;
    while events.is_read.load(Ordering::SeqCst) < 10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(events.most_readers.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn credentials_that_may_not_read_the_queue_keep_no_others_from_it() {
    let regions = TwoConfigurations::new();
    let (wake, mut woken) = mpsc::unbounded_channel();
    let refused = OneWarning {
        is_refused: true,
        ..OneWarning::default()
    };
    let turn = Turn::default();
    let queue = regions.queue(Arc::new(refused), &turn);
    tokio::spawn(follow(Arc::downgrade(&regions.first), queue, wake.clone()));
    tokio::task::yield_now().await;
    let queue = regions.queue(Arc::default(), &turn);
    tokio::spawn(follow(Arc::downgrade(&regions.second), queue, wake));
    assert_eq!(next(&mut woken).await.name, "pool");
}

/// A region whose last look shows `i-7`.
fn region(market: Market) -> Arc<Region> {
    let regions = TwoConfigurations::new();
    let mut shown = instance_for_tests("i-7");
    shown.offering.market = market;
    let instances = BTreeMap::from([("uid".to_owned(), vec![Arc::new(shown)])]);
    let snapshot = Snapshot {
        instances: Arc::new(instances),
        ..Snapshot::default()
    };
    drop(
        regions
            .second
            .publish(Ok(Arc::new(snapshot)), Timestamp::now()),
    );
    regions.second
}

fn warned(region: &Region, at: Timestamp) -> usize {
    let event = Event {
        instance_id: "i-7".into(),
        notice: Some(Notice {
            kind: NoticeKind::Interruption,
            at,
        }),
    };
    note(region, std::iter::once(&event), Timestamp::now()).len()
}

#[tokio::test]
async fn an_old_message_and_one_about_an_on_demand_instance_interrupt_nobody() {
    let spot = region(Market::Spot);
    let now = Timestamp::now();
    assert_eq!(warned(&spot, now - SignedDuration::from_hours(1)), 0);
    assert!(spot.notices().all().is_empty());
    assert_eq!(warned(&region(Market::OnDemand), now), 0);
    assert_eq!(warned(&spot, now), 1);
}
