//! The requests that a batcher has not sent yet, by urgency.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use provider_core::Instance;
use tokio::sync::{mpsc, oneshot};

use crate::Ec2Error;

/// The number of requests in the channel, and of those in the queue. When both are full, callers wait.
pub(super) const WAITING: usize = 1024;

/// Which requests are answered first, if not all can be at once. The higher one comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Urgency {
    pub(super) is_leased: bool,
    pub(super) dearness: u32,
}

impl Urgency {
    /// The urgency of an instance's end: a person counts on the end of a lease, and a dear instance
    /// costs most.
    pub(crate) fn of(instance: &Instance) -> Self {
        Self {
            is_leased: instance.lease.is_some(),
            dearness: instance.offering.dearness(),
        }
    }
}

/// A request to combine with others.
#[derive(Debug)]
pub(super) struct Request<A> {
    pub(super) ids: Vec<String>,
    pub(super) urgency: Urgency,
    pub(super) answer: oneshot::Sender<Result<A, Ec2Error>>,
}

/// The requests that wait, by urgency and then by their order.
pub(super) struct Queue<A> {
    requests: mpsc::Receiver<Request<A>>,
    waiting: BinaryHeap<Waiting<A>>,
    received: u64,
}

impl<A> Queue<A> {
    pub(super) fn new(requests: mpsc::Receiver<Request<A>>) -> Self {
        Self {
            requests,
            waiting: BinaryHeap::new(),
            received: 0,
        }
    }

    /// Waits for a request, and returns the number of ids of the first one. None after the last
    /// request.
    pub(super) async fn first(&mut self) -> Option<usize> {
        if self.waiting.is_empty() {
            let request = self.requests.recv().await?;
            self.add(request);
        }
        self.receive();
        self.waiting.peek().map(|first| first.request.ids.len())
    }

    /// The first requests. The last of them reaches the number of ids.
    pub(super) fn take(&mut self, ids: usize) -> Vec<Request<A>> {
        self.receive();
        let mut together: Vec<Request<A>> = Vec::new();
        let mut count = 0;
        while count < ids
            && let Some(Waiting { request, .. }) = self.waiting.pop()
        {
            count += request.ids.len();
            together.push(request);
        }
        together
    }

    fn receive(&mut self) {
        while self.waiting.len() < WAITING
            && let Ok(request) = self.requests.try_recv()
        {
            self.add(request);
        }
    }

    fn add(&mut self, request: Request<A>) {
        self.received += 1;
        let order = (request.urgency, Reverse(self.received));
        self.waiting.push(Waiting { order, request });
    }
}

struct Waiting<A> {
    order: (Urgency, Reverse<u64>),
    request: Request<A>,
}

impl<A> Ord for Waiting<A> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

impl<A> PartialOrd for Waiting<A> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<A> PartialEq for Waiting<A> {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl<A> Eq for Waiting<A> {}

#[cfg(test)]
mod tests {
    use super::*;

    /// EC2 grants two ends now, and the others wait.
    #[tokio::test]
    async fn of_more_ends_than_ec2_grants_the_leased_and_the_dear_ones_come_first() {
        let (requests, received) = mpsc::channel(WAITING);
        for (id, is_leased, dearness) in [
            ("cheap", false, 1),
            ("dear", false, 9),
            ("leased", true, 1),
            ("cheap too", false, 1),
        ] {
            let request = Request {
                ids: vec![id.to_owned()],
                urgency: Urgency {
                    is_leased,
                    dearness,
                },
                answer: oneshot::channel::<Result<(), Ec2Error>>().0,
            };
            requests.send(request).await.unwrap();
        }
        drop(requests);
        let mut queue = Queue::new(received);
        let mut order = Vec::new();
        while queue.first().await.is_some() {
            let ids = queue.take(2).into_iter().flat_map(|request| request.ids);
            order.push(ids.collect::<Vec<String>>());
        }
        assert_eq!(
            order,
            [["leased", "dear"], ["cheap", "cheap too"]].map(|ids| ids.map(str::to_owned).to_vec())
        );
    }
}
