//! The connections of clients that have not shown yet who they are, or what they want.

use std::collections::{BTreeMap, HashMap};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

/// A limited number of places for connections.
///
/// If every place is taken, a new connection gets the place of another one. To refuse the new one
/// would let a client keep all others out by connections that do nothing. To close the oldest one
/// would let a client keep all others out by many new connections.
#[derive(Debug)]
pub struct Room {
    places: Arc<Semaphore>,
    guests: Mutex<Guests>,
}

/// The place of a connection. Drop it after the connection is closed, or after the client has shown
/// who it is.
#[derive(Debug)]
pub struct Place {
    room: Arc<Room>,
    guest: u64,
    claimed: oneshot::Receiver<()>,
    _permit: Option<OwnedSemaphorePermit>,
}

/// Notes that the request of a connection has arrived.
#[derive(Clone, Debug)]
pub struct Asked {
    room: Arc<Room>,
    guest: u64,
}

impl Room {
    /// A room with this number of places.
    pub fn new(places: usize) -> Arc<Self> {
        Arc::new(Self {
            places: Arc::new(Semaphore::new(places)),
            guests: Mutex::default(),
        })
    }

    /// Gives a new connection a place. If that takes the place of another connection, it waits until
    /// the other one is closed, and returns the other one's address.
    pub async fn admit(self: &Arc<Self>, peer: IpAddr) -> (Place, Option<IpAddr>) {
        // Clients with IPv4 appear as IPv6 on a socket for both.
        let peer = peer.to_canonical();
        let mut closed = None;
        let mut permit = Arc::clone(&self.places).try_acquire_owned().ok();
        if permit.is_none() {
            closed = self.guests().dismiss_for(peer);
            // The semaphore is never closed, so this is no error.
            permit = Arc::clone(&self.places).acquire_owned().await.ok();
        }
        let (leave, claimed) = oneshot::channel();
        let guest = self.guests().add(peer, leave);
        let room = Arc::clone(self);
        let place = Place {
            room,
            guest,
            claimed,
            _permit: permit,
        };
        (place, closed)
    }

    fn guests(&self) -> MutexGuard<'_, Guests> {
        self.guests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until another connection needs the place.
    pub async fn claimed(&mut self) {
        poll_fn(|cx| self.poll_claimed(cx)).await;
    }

    /// Whether another connection needs the place.
    pub fn poll_claimed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // The sender is dropped, which is an error.
        Pin::new(&mut self.claimed).poll(cx).map(drop)
    }

    /// For a note that the request has arrived. The connection then keeps its place as long as there
    /// are connections without a request.
    pub fn asked(&self) -> Asked {
        Asked {
            room: Arc::clone(&self.room),
            guest: self.guest,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.guests().all.remove(&self.guest);
    }
}

impl Asked {
    /// Notes that the request has arrived.
    pub fn note(&self) {
        if let Some(guest) = self.room.guests().all.get_mut(&self.guest) {
            guest.has_asked = true;
        }
    }
}

/// The connections, by age.
#[derive(Debug, Default)]
struct Guests {
    next: u64,
    all: BTreeMap<u64, Guest>,
}

#[derive(Debug)]
struct Guest {
    peer: IpAddr,
    has_asked: bool,
    // Dropped to tell the connection to leave.
    _leave: oneshot::Sender<()>,
}

impl Guests {
    fn add(&mut self, peer: IpAddr, leave: oneshot::Sender<()>) -> u64 {
        let number = self.next;
        self.next += 1;
        let guest = Guest {
            peer,
            has_asked: false,
            _leave: leave,
        };
        self.all.insert(number, guest);
        number
    }

    /// Tells a connection to leave for one of `newcomer`. Returns its address.
    fn dismiss_for(&mut self, newcomer: IpAddr) -> Option<IpAddr> {
        let number = self.least_needed(newcomer)?;
        self.all.remove(&number).map(|guest| guest.peer)
    }

    /// The oldest connection of the address that has the most, the newcomer's included. Connections
    /// whose request is being answered stay, unless there are no others.
    fn least_needed(&self, newcomer: IpAddr) -> Option<u64> {
        let all_asked = self.all.values().all(|guest| guest.has_asked);
        let candidates = || {
            let all = self.all.iter();
            all.filter(|(_, guest)| all_asked || !guest.has_asked)
        };
        let mut counts = HashMap::from([(newcomer, 1)]);
        for (_, guest) in candidates() {
            *counts.entry(guest.peer).or_insert(0) += 1;
        }
        // The newcomer's address may have no connection yet.
        let count = |guest: &Guest| counts.get(&guest.peer).copied();
        let most = candidates().filter_map(|(_, guest)| count(guest)).max();
        candidates()
            .find(|(_, guest)| count(guest) == most)
            .map(|(number, _)| *number)
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::pin::pin;

    use tokio::time::{Duration, timeout};

    use super::*;

    const CROSSPLANE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
    const STRANGER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 3));

    /// Takes a place as a connection does: until another connection needs it.
    fn stay(mut place: Place) -> tokio::task::JoinHandle<()> {
        tokio::spawn(async move { place.claimed().await })
    }

    async fn enter(
        room: &Arc<Room>,
        peer: IpAddr,
    ) -> (tokio::task::JoinHandle<()>, Option<IpAddr>) {
        let (place, closed) = room.admit(peer).await;
        (stay(place), closed)
    }

    #[tokio::test]
    async fn a_stranger_with_many_connections_takes_nobody_elses_place() {
        let room = Room::new(4);
        let (crossplane, _) = enter(&room, CROSSPLANE).await;
        for _ in 0..3 {
            assert_eq!(enter(&room, STRANGER).await.1, None);
        }
        for _ in 0..100 {
            assert_eq!(enter(&room, STRANGER).await.1, Some(STRANGER));
        }
        assert!(!crossplane.is_finished());
        assert_eq!(enter(&room, CROSSPLANE).await.1, Some(STRANGER));
        assert!(!crossplane.is_finished());
    }

    #[tokio::test]
    async fn of_clients_with_as_many_connections_the_oldest_leaves() {
        let room = Room::new(2);
        let (first, _) = enter(&room, STRANGER).await;
        let (second, _) = enter(&room, OTHER).await;
        assert_eq!(enter(&room, CROSSPLANE).await.1, Some(STRANGER));
        assert!(first.is_finished() && !second.is_finished());
    }

    #[tokio::test]
    async fn a_client_with_its_second_connection_takes_its_own_place() {
        let room = Room::new(2);
        let (crossplane, _) = enter(&room, CROSSPLANE).await;
        enter(&room, STRANGER).await;
        assert_eq!(enter(&room, STRANGER).await.1, Some(STRANGER));
        assert!(!crossplane.is_finished());
    }

    #[tokio::test]
    async fn an_answer_is_not_cut_off_for_a_connection_without_a_request() {
        let room = Room::new(2);
        let (asking, _) = room.admit(STRANGER).await;
        asking.asked().note();
        let asking = stay(asking);
        enter(&room, STRANGER).await;
        assert_eq!(enter(&room, STRANGER).await.1, Some(STRANGER));
        assert!(!asking.is_finished());
    }

    #[tokio::test]
    async fn requests_alone_do_not_fill_the_room_for_ever() {
        let room = Room::new(2);
        for _ in 0..2 {
            let (asking, _) = room.admit(STRANGER).await;
            asking.asked().note();
            stay(asking);
        }
        assert_eq!(enter(&room, CROSSPLANE).await.1, Some(STRANGER));
    }

    #[tokio::test]
    async fn a_new_connection_waits_until_the_one_before_is_closed() {
        let room = Room::new(1);
        let (mut open, _) = room.admit(STRANGER).await;
        let mut next = pin!(room.admit(CROSSPLANE));
        let soon = Duration::from_millis(50);
        assert!(timeout(soon, &mut next).await.is_err());
        open.claimed().await;
        drop(open);
        assert_eq!(next.await.1, Some(STRANGER));
    }

    #[tokio::test]
    async fn a_client_that_has_shown_who_it_is_is_not_counted() {
        let room = Room::new(1);
        for _ in 0..10 {
            let (place, closed) = room.admit(CROSSPLANE).await;
            assert_eq!(closed, None);
            drop(place);
        }
    }

    #[tokio::test]
    async fn an_address_is_the_same_in_both_notations() {
        let room = Room::new(2);
        let mapped = IpAddr::V6(Ipv4Addr::new(10, 0, 0, 2).to_ipv6_mapped());
        enter(&room, OTHER).await;
        enter(&room, mapped).await;
        assert_eq!(enter(&room, STRANGER).await.1, Some(STRANGER));
    }
}
