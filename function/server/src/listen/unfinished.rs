//! A handshake that is not finished.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use listening::room::Place;
use tokio::time::{Sleep, sleep};

use crate::listen::refusals::Refusals;

/// Longest time for a handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);

/// A handshake that is not finished. It has a place and a deadline. Drop it when the handshake is
/// finished or the connection is closed.
#[derive(Debug)]
pub struct Unfinished {
    place: Place,
    deadline: Pin<Box<Sleep>>,
    peer: SocketAddr,
    refusals: Arc<Refusals>,
    is_over: bool,
}

impl Unfinished {
    /// A handshake that begins now.
    pub fn begin(place: Place, peer: SocketAddr, refusals: Arc<Refusals>) -> Self {
        Self {
            place,
            deadline: Box::pin(sleep(HANDSHAKE)),
            peer,
            refusals,
            is_over: false,
        }
    }

    /// Waits until the connection must be closed: another one needs its place, or it took too long.
    pub async fn over(&mut self) {
        poll_fn(|cx| self.poll_over(cx)).await;
    }

    /// Whether the connection must be closed.
    pub fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if !self.is_over && self.place.poll_claimed(cx).is_ready() {
            self.is_over = true;
        }
        if !self.is_over && self.deadline.as_mut().poll(cx).is_ready() {
            self.is_over = true;
            self.refusals.gave_up(self.peer, HANDSHAKE);
        }
        if self.is_over {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}
