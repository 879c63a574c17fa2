use crate::error::ApiError;
use crate::guest::GuestId;
use crate::peer::Peer;
use crate::places::Seat;
use crate::turns::busy;
use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use hyper::body::{Bytes, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

/// What answers that aren't read yet may take, in all and of one that asks. One answer larger than that counts as this much.
const MOST: usize = 20 << 20;
const MOST_OF_ONE: usize = 10 << 20;
/// An answer no larger than this needs no room: there are no more of them than connections.
const SMALL: usize = 16 << 10;
/// Given to the connection at once; the rest stays where it is until this is read.
const PIECE: usize = 16 << 10;
/// Who has this much to read yet reads first, and so long a request waits for that.
const MUCH: usize = 4 << 20;
const PATIENCE: Duration = Duration::from_secs(2);
/// An answer that is computed waits for room only so long, since others wait for its turn.
const BRIEFLY: Duration = Duration::from_millis(500);
/// An answer must be read within this time, and as much more as it takes at this rate, bytes/s.
const READ_BY: Duration = Duration::from_secs(30);
const SLOWEST: usize = 32 << 10;

/// The memory of answers that aren't read yet.
#[derive(Debug, Default)]
pub(crate) struct Room {
    held: Mutex<Vec<Answer>>,
    freed: tokio::sync::Notify,
}

/// An answer that is being read.
#[derive(Debug)]
struct Answer {
    number: u64,
    who: GuestId,
    bytes: usize,
    seat: Arc<Seat>,
}

/// Room, until it is dropped.
#[derive(Debug)]
struct RoomHold {
    room: Arc<Room>,
    number: u64,
    /// Ends the connection of who reads too slowly.
    timer: Option<tokio::task::AbortHandle>,
}

impl Drop for RoomHold {
    fn drop(&mut self) {
        if let Some(timer) = &self.timer {
            timer.abort();
        }
        self.room.list().retain(|answer| answer.number != self.number);
        self.room.freed.notify_waiters();
    }
}

impl Room {
    fn list(&self) -> MutexGuard<'_, Vec<Answer>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands out JSON, piece by piece as it is read.
    ///
    /// # Errors
    /// [`ApiError`], 429 while whoever asks has more that isn't read yet.
    pub(crate) async fn json(self: &Arc<Self>, peer: &Peer, bytes: Vec<u8>) -> Result<Response, ApiError> {
        let body = self.body(peer, bytes).await?;
        Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
    }

    /// The same for a file that is kept under a name.
    ///
    /// # Errors
    /// As [`json`](Self::json).
    pub(crate) async fn file(
        self: &Arc<Self>,
        peer: &Peer,
        kind: &'static str,
        name: &str,
        bytes: Vec<u8>,
    ) -> Result<Response, ApiError> {
        let body = self.body(peer, bytes).await?;
        let keep = format!("attachment; filename=\"{name}\"");
        Ok(([(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_DISPOSITION, keep)], body).into_response())
    }

    async fn body(self: &Arc<Self>, peer: &Peer, bytes: Vec<u8>) -> Result<Body, ApiError> {
        let held = if bytes.len() > SMALL { Some(self.wait(peer, bytes.len()).await?) } else { None };
        Ok(Body::new(Pieces { rest: Bytes::from(bytes.into_boxed_slice()), held }))
    }

    /// Waits until whoever asks has read most of what there is.
    ///
    /// # Errors
    /// [`ApiError`], 429 if that takes too long.
    pub(crate) async fn ready(&self, who: GuestId) -> Result<(), ApiError> {
        self.until(PATIENCE, || (taken(&self.list(), who) < MUCH).then_some(())).await
    }

    /// Looks again whenever an answer is read or given up.
    async fn until<T>(&self, patience: Duration, mut found: impl FnMut() -> Option<T>) -> Result<T, ApiError> {
        let looks = async {
            loop {
                let mut freed = std::pin::pin!(self.freed.notified());
                freed.as_mut().enable();
                match found() {
                    Some(found) => return found,
                    None => freed.await,
                }
            }
        };
        tokio::time::timeout(patience, looks).await.map_err(|_| busy("earlier answers aren't read yet"))
    }

    async fn wait(self: &Arc<Self>, peer: &Peer, bytes: usize) -> Result<RoomHold, ApiError> {
        let mut held = self.until(BRIEFLY, || self.take(peer.who, bytes, &peer.seat)).await?;
        let (seat, within) = (Arc::clone(&peer.seat), READ_BY + Duration::from_secs((bytes / SLOWEST) as u64));
        let timer = tokio::spawn(async move {
            tokio::time::sleep(within).await;
            seat.give_up();
        });
        held.timer = Some(timer.abort_handle());
        Ok(held)
    }

    /// Room for an answer, if its reader has less than a share; whoever has most makes room for others.
    fn take(self: &Arc<Self>, who: GuestId, bytes: usize, seat: &Arc<Seat>) -> Option<RoomHold> {
        let bytes = bytes.min(MOST_OF_ONE);
        let mut list = self.list();
        if taken(&list, who) + bytes > MOST_OF_ONE {
            return None;
        }
        while list.iter().map(|answer| answer.bytes).sum::<usize>() + bytes > MOST {
            // The first of them has had the most time.
            let most = list.iter().map(|answer| answer.who).max_by_key(|who| taken(&list, *who))?;
            if taken(&list, most) < taken(&list, who) + bytes {
                return None;
            }
            let first = list.iter().position(|answer| answer.who == most)?;
            list.remove(first).seat.give_up();
        }
        let number = wt_sys::clock::monotonic_ns().max(list.last().map_or(0, |last| last.number + 1));
        list.push(Answer { number, who, bytes, seat: Arc::clone(seat) });
        Some(RoomHold { room: Arc::clone(self), number, timer: None })
    }
}

fn taken(list: &[Answer], who: GuestId) -> usize {
    list.iter().filter(|answer| answer.who == who).map(|answer| answer.bytes).sum()
}

/// A body in pieces, whose length is known.
struct Pieces {
    rest: Bytes,
    held: Option<RoomHold>,
}

/// What never changes, in pieces.
pub(crate) fn fixed(bytes: &'static [u8]) -> Body {
    Body::new(Pieces { rest: Bytes::from_static(bytes), held: None })
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            self.held = None;
            return Poll::Ready(None);
        }
        let most = self.rest.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(most)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    const MIB: usize = 1 << 20;

    fn take(room: &Arc<Room>, last: u8, bytes: usize) -> Option<RoomHold> {
        room.take(GuestId::of(IpAddr::from([192, 0, 2, last]), None), bytes, &Seat::test())
    }

    fn all(room: &Room) -> usize {
        room.list().iter().map(|answer| answer.bytes).sum()
    }

    #[test]
    fn what_isnt_read_is_bounded_for_one_and_for_all() {
        let room = Arc::new(Room::default());
        let many: Vec<_> =
            (0..=255).flat_map(|n| (0..200).map(move |_| n)).filter_map(|n| take(&room, n, 9 * MIB)).collect();
        assert!(all(&room) <= MOST, "{}", all(&room));
        drop(many);
        assert_eq!(all(&room), 0);
        let one: Vec<_> = (0..200).filter_map(|_| take(&room, 1, MIB)).collect();
        assert_eq!((one.len(), all(&room)), (10, MOST_OF_ONE));
        assert!(take(&room, 2, 300 * MIB).is_some(), "an answer of any size gets through if it is the only one");
    }

    #[tokio::test]
    async fn those_with_most_make_room_for_one_with_little() {
        let room = Arc::new(Room::default());
        let seat = Seat::test();
        let who = |last| GuestId::of(IpAddr::from([192, 0, 2, last]), None);
        let _first = room.take(who(1), 10 * MIB, &seat).unwrap();
        let _second = take(&room, 2, 9 * MIB).unwrap();
        let third = take(&room, 3, 2 * MIB);
        assert!(third.is_some());
        seat.given_up().await;
        assert_eq!(all(&room), 11 * MIB);
        assert!(take(&room, 3, 9 * MIB).is_none(), "its own share holds for it, too");
    }
}
