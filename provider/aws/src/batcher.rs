//! A batcher: it combines the calls that many pools make at the same time into few calls.
//!
//! If a thousand workspaces end in the same minute, they need seventeen calls of
//! `TerminateInstances` a second. EC2 grants five beyond a burst of a hundred ("Request throttling
//! for the Amazon EC2 API" in the Amazon EC2 Developer Guide).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use provider_core::ErrorClass;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until};

use crate::Ec2Error;
use crate::bucket::{Bucket, Grant};

mod queue;

pub(crate) use queue::Urgency;
use queue::{Queue, Request, WAITING};

/// After this many denied calls in a row, all requests are denied: permissions may depend on an
/// instance's tags, but twice the way down to a single one of 500 instances was denied.
const DENIED_FOR_ALL: u32 = 20;

/// A call about instances that one answer can cover for several callers.
#[async_trait]
pub(crate) trait Call: Send + Sync + 'static {
    /// EC2's answer about all of the ids.
    type Answer: Clone + Send + 'static;

    /// Makes one call to EC2.
    async fn call(&self, ids: &[String]) -> Result<Self::Answer, Ec2Error>;
}

/// Limits for the size and the rate of calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// The number of ids in one call. The request that reaches it is the last one of the call.
    pub(crate) ids: usize,
    /// The time between the starts of two calls.
    pub(crate) apart: Duration,
    /// How many ids EC2 takes in all calls. `None` without such a limit.
    pub(crate) grant: Option<Grant>,
}

/// Combines the requests that arrive while no call may start, the urgent ones first. After a quiet
/// time the first request is sent at once.
#[derive(Debug)]
pub(crate) struct Batcher<C: Call> {
    call: Arc<C>,
    requests: mpsc::Sender<Request<C::Answer>>,
}

impl<C: Call> Batcher<C> {
    /// Combines calls until it is dropped. Must be called within a tokio runtime.
    pub(crate) fn new(call: C, limits: Limits) -> Self {
        let call = Arc::new(call);
        let (requests, made) = mpsc::channel(WAITING);
        tokio::spawn(serve(Arc::clone(&call), made, limits));
        Self { call, requests }
    }

    /// The answer of a call that started after this request and includes these ids.
    pub(crate) async fn ask(&self, ids: &[String]) -> Result<C::Answer, Ec2Error> {
        self.ask_urgently(ids, Urgency::default()).await
    }

    /// The same, before requests that are less urgent.
    pub(crate) async fn ask_urgently(
        &self,
        ids: &[String],
        urgency: Urgency,
    ) -> Result<C::Answer, Ec2Error> {
        let (answer, answered) = oneshot::channel();
        let request = Request {
            ids: ids.to_vec(),
            urgency,
            answer,
        };
        if self.requests.send(request).await.is_ok()
            && let Ok(answer) = answered.await
        {
            return answer;
        }
        // The serving task has ended, for example because the runtime shuts down.
        self.call.call(ids).await
    }
}

/// Starts one call after the other, and does not wait for their answers.
async fn serve<C: Call>(
    call: Arc<C>,
    requests: mpsc::Receiver<Request<C::Answer>>,
    limits: Limits,
) {
    let mut bucket = limits.grant.map(Bucket::new);
    let was_throttled = Arc::new(AtomicBool::new(false));
    let mut queue = Queue::new(requests);
    while let Some(first) = queue.first().await {
        if was_throttled.swap(false, Ordering::Relaxed)
            && let Some(bucket) = &mut bucket
        {
            bucket.empty();
        }
        let most = match &mut bucket {
            Some(bucket) => bucket.wait_for(first).await.min(limits.ids),
            None => limits.ids,
        };
        let began = Instant::now();
        let together = queue.take(most);
        if let Some(bucket) = &mut bucket {
            bucket.take(together.iter().map(|request| request.ids.len()).sum());
        }
        let (call, was_throttled) = (Arc::clone(&call), Arc::clone(&was_throttled));
        tokio::spawn(answer(call, together, limits.apart, was_throttled));
        sleep_until(began + limits.apart).await;
    }
}

/// Answers requests with one call. If EC2 refuses it, the requests are divided among more calls:
/// EC2 refuses a whole call because one instance is protected or gone, and that must not keep
/// another instance running. `was_throttled` learns that EC2 grants less than the bucket has.
async fn answer<C: Call>(
    call: Arc<C>,
    together: Vec<Request<C::Answer>>,
    apart: Duration,
    was_throttled: Arc<AtomicBool>,
) {
    let mut parts = vec![together];
    let mut denied_in_a_row = 0;
    while let Some(mut part) = parts.pop() {
        let began = Instant::now();
        let ids: Vec<String> = part.iter().flat_map(|r| r.ids.clone()).collect();
        let answer = call.call(&ids).await;
        let is_of = |class| move |error: &Ec2Error| error.class == class;
        if answer.as_ref().is_err_and(is_of(ErrorClass::Throttled)) {
            was_throttled.store(true, Ordering::Relaxed);
        }
        denied_in_a_row = if answer.as_ref().is_err_and(is_of(ErrorClass::Denied)) {
            denied_in_a_row + 1
        } else {
            0
        };
        if denied_in_a_row == DENIED_FOR_ALL {
            part.extend(parts.drain(..).flatten());
        } else if part.len() > 1 && answer.as_ref().is_err_and(Ec2Error::may_concern_some) {
            let half = part.split_off(part.len() / 2);
            parts.extend([half, part]);
            sleep_until(began + apart).await;
            continue;
        }
        for request in part {
            // The caller may have stopped waiting.
            drop(request.answer.send(answer.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::sync::Notify;
    use tokio::task::JoinSet;
    use tokio::time::timeout;

    use super::*;

    const SOON: Duration = Duration::from_secs(20);
    const LIMITS: Limits = Limits {
        ids: 10,
        apart: Duration::from_millis(20),
        grant: None,
    };

    const LARGE: Limits = Limits {
        ids: 500,
        apart: Duration::from_millis(1),
        grant: None,
    };

    /// Returns the ids. It refuses calls about `bad` with its class, and holds calls about `slow`
    /// until the test releases them.
    #[derive(Clone)]
    struct Echo {
        code: &'static str,
        class: ErrorClass,
        go: Arc<Notify>,
        calls: Arc<Mutex<Vec<Called>>>,
    }

    struct Called {
        at: Instant,
        ids: Vec<String>,
    }

    impl Echo {
        fn refusing(class: ErrorClass) -> Self {
            Self {
                code: "Refused",
                class,
                go: Arc::default(),
                calls: Arc::default(),
            }
        }

        fn sizes(&self) -> Vec<usize> {
            let calls = self.calls.lock().unwrap();
            calls.iter().map(|call| call.ids.len()).collect()
        }
    }

    #[async_trait]
    impl Call for Echo {
        type Answer = Arc<Vec<String>>;

        async fn call(&self, ids: &[String]) -> Result<Self::Answer, Ec2Error> {
            let ids = ids.to_vec();
            let called = Called {
                at: Instant::now(),
                ids: ids.clone(),
            };
            self.calls.lock().unwrap().push(called);
            if ids.iter().any(|id| id == "slow") {
                self.go.notified().await;
            }
            if ids.iter().any(|id| id.starts_with("bad")) {
                return Err(Ec2Error {
                    operation: "Echo",
                    code: self.code.to_owned(),
                    message: String::new(),
                    class: self.class,
                });
            }
            Ok(Arc::new(ids))
        }
    }

    /// Asks for all ids at the same time, one in each request, and returns the answered ids.
    async fn answered(batcher: &Arc<Batcher<Echo>>, ids: &[&str]) -> Vec<String> {
        let mut asking = JoinSet::new();
        for id in ids {
            let (batcher, id) = (Arc::clone(batcher), (*id).to_owned());
            asking.spawn(async move {
                let ids = [id];
                let answer = batcher.ask(&ids).await.ok()?;
                let [id] = ids;
                answer.contains(&id).then_some(id)
            });
        }
        let answers = timeout(SOON, asking.join_all()).await.unwrap();
        let mut answered: Vec<_> = answers.into_iter().flatten().collect();
        answered.sort();
        answered
    }

    #[tokio::test]
    async fn a_thousand_terminations_at_once_take_few_calls_at_the_granted_rate() {
        let echo = Echo::refusing(ErrorClass::Denied);
        let batcher = Arc::new(Batcher::new(echo.clone(), LIMITS));
        let ids: Vec<String> = (0..35).map(|n| format!("i-{n:02}")).collect();
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        let began = Instant::now();
        assert_eq!(answered(&batcher, &asked).await, ids);
        assert_eq!(echo.sizes(), [10, 10, 10, 5]);
        // On a busy machine a call is noted later than it is made, so two calls may look closer
        // than they were.
        for (earlier, call) in (0..).zip(echo.calls.lock().unwrap().iter()) {
            assert!(call.at - began >= LIMITS.apart * earlier);
        }
    }

    /// EC2 would refuse a whole call that asks for more.
    #[tokio::test]
    async fn more_terminations_than_ec2_grants_go_at_the_granted_rate() {
        let limits = Limits {
            ids: 100,
            apart: Duration::from_millis(1),
            grant: Some(Grant {
                at_once: 20,
                each_second: 100,
            }),
        };
        let echo = Echo::refusing(ErrorClass::Denied);
        let batcher = Arc::new(Batcher::new(echo.clone(), limits));
        let ids: Vec<String> = (0..60).map(|n| format!("i-{n:02}")).collect();
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        let began = Instant::now();
        assert_eq!(answered(&batcher, &asked).await, ids);
        assert!(began.elapsed() >= Duration::from_millis(390));
        let mut sent = 0.0;
        for call in echo.calls.lock().unwrap().iter() {
            sent += f64::from(u32::try_from(call.ids.len()).unwrap());
            let granted = 20.0 + (call.at - began).as_secs_f64() * 100.0;
            assert!(sent <= granted + 0.01, "{sent} of {granted}");
        }
    }

    #[tokio::test]
    async fn a_single_termination_does_not_wait() {
        let limits = Limits {
            apart: Duration::from_hours(1),
            ..LIMITS
        };
        let echo = Echo::refusing(ErrorClass::Denied);
        let batcher = Arc::new(Batcher::new(echo, limits));
        assert_eq!(answered(&batcher, &["alone"]).await, ["alone"]);
    }

    #[tokio::test]
    async fn a_refused_termination_does_not_keep_other_instances_running() {
        let echo = Echo::refusing(ErrorClass::Configuration);
        let batcher = Arc::new(Batcher::new(echo.clone(), LIMITS));
        let asked = ["a", "b", "bad", "c", "d", "e", "f", "g"];
        let others = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(answered(&batcher, &asked).await, others);
        assert_eq!(echo.sizes(), [8, 4, 2, 2, 1, 1, 4]);
    }

    #[tokio::test]
    async fn an_instance_that_ec2_does_not_find_keeps_no_other_one_running() {
        for code in ["InvalidInstanceID.NotFound", "IncorrectInstanceState"] {
            let echo = Echo {
                code,
                ..Echo::refusing(ErrorClass::of(code))
            };
            let batcher = Arc::new(Batcher::new(echo.clone(), LIMITS));
            assert_eq!(answered(&batcher, &["a", "bad", "b"]).await, ["a", "b"]);
        }
    }

    #[tokio::test]
    async fn a_permission_that_lacks_for_all_instances_costs_few_calls() {
        let echo = Echo::refusing(ErrorClass::Denied);
        let batcher = Arc::new(Batcher::new(echo.clone(), LARGE));
        let ids: Vec<String> = (0..500).map(|number| format!("bad-{number}")).collect();
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        assert!(answered(&batcher, &asked).await.is_empty());
        assert_eq!(echo.sizes().len(), 20);
    }

    #[tokio::test]
    async fn an_instance_whose_termination_is_denied_keeps_no_other_one_running() {
        let echo = Echo::refusing(ErrorClass::Denied);
        let batcher = Arc::new(Batcher::new(echo.clone(), LARGE));
        let mut ids: Vec<String> = (0..499).map(|number| format!("i-{number:03}")).collect();
        ids.push("bad".to_owned());
        let asked: Vec<&str> = ids.iter().map(String::as_str).collect();
        assert_eq!(answered(&batcher, &asked).await.len(), 499);
    }

    #[tokio::test]
    async fn a_call_that_is_throttled_is_not_made_again_in_parts() {
        let echo = Echo::refusing(ErrorClass::Throttled);
        let batcher = Arc::new(Batcher::new(echo.clone(), LIMITS));
        assert!(answered(&batcher, &["a", "bad", "b"]).await.is_empty());
        assert_eq!(echo.sizes(), [3]);
    }

    /// Another client of the account may have ended instances as well.
    #[tokio::test]
    async fn calls_are_smaller_after_one_that_was_throttled() {
        let limits = Limits {
            ids: 100,
            apart: Duration::from_millis(1),
            grant: Some(Grant {
                at_once: 1000,
                each_second: 20,
            }),
        };
        let echo = Echo::refusing(ErrorClass::Throttled);
        let batcher = Arc::new(Batcher::new(echo.clone(), limits));
        assert!(answered(&batcher, &["bad"]).await.is_empty());
        let began = Instant::now();
        let ids = ["a", "b", "c", "d", "e"];
        assert_eq!(answered(&batcher, &ids).await, ids);
        assert!(began.elapsed() >= Duration::from_millis(240));
        assert!(echo.sizes()[1] < 5, "{:?}", echo.sizes());
    }

    #[tokio::test]
    async fn a_slow_answer_does_not_delay_the_next_termination() {
        let echo = Echo::refusing(ErrorClass::Denied);
        let batcher = Arc::new(Batcher::new(echo.clone(), LIMITS));
        let ids = ["slow".to_owned()];
        let slow = Arc::clone(&batcher);
        let slow = tokio::spawn(async move { slow.ask(&ids).await });
        while echo.sizes().is_empty() {
            tokio::task::yield_now().await;
        }
        assert_eq!(answered(&batcher, &["next"]).await, ["next"]);
        assert!(!slow.is_finished());
        echo.go.notify_one();
        assert!(timeout(SOON, slow).await.unwrap().unwrap().is_ok());
    }

    #[tokio::test]
    async fn a_caller_that_stops_waiting_does_not_affect_other_callers() {
        let echo = Echo::refusing(ErrorClass::Denied);
        let batcher = Arc::new(Batcher::new(echo, LIMITS));
        let ids = ["gone".to_owned()];
        let gone = Arc::clone(&batcher);
        let gone = tokio::spawn(async move { gone.ask(&ids).await });
        tokio::task::yield_now().await;
        gone.abort();
        assert_eq!(answered(&batcher, &["a", "b"]).await, ["a", "b"]);
    }
}
