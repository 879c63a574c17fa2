use super::{ConnectionEnd, FetchedObject, PageConnection, PageStop};
use crate::allowance::Allowance;
use crate::error::{FetchError, LoadError};
use crate::transfer::Finish;
use crate::work::{Leg, OpenedConnection, Record, RemoteEnd, Talk};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::tcp::TcpInfo;
use wt_trial::{Cancel, PageObject};
use wt_units::Settings;

/// Bytes of a request: what a browser's usually has.
const REQUEST: u32 = 400;

/// A page over our own protocol: requests and answers of the same sizes as over HTTP, over connections of the same kind.
pub(crate) struct TalkPage<'a> {
    /// Who serves it.
    pub(crate) far: &'a dyn RemoteEnd,
    /// After this long it is given up.
    pub(crate) deadline: Duration,
}

impl<'a> TalkPage<'a> {
    /// Opens the connection with this number.
    ///
    /// # Errors
    /// [`PageStop`].
    pub(crate) fn open(&self, number: u32, cancel: &'a Cancel) -> Result<Box<dyn PageConnection + 'a>, PageStop> {
        let opened = self.far.open(number, &Leg::Talk { time: self.deadline })?;
        let OpenedConnection { stream, window, connect_time, granted, .. } = opened;
        let limit_ns = monotonic_ns().saturating_add(self.deadline.as_nanos() as u64);
        let broken = |error| PageStop::Fetch(FetchError::Load(LoadError::Broken(error)));
        let talk = Talk::new(stream, limit_ns, window, Allowance::endless(), cancel).map_err(broken)?;
        Ok(Box::new(TalkConnection { talk, connect_time, granted }))
    }
}

struct TalkConnection<'a> {
    talk: Talk<'a>,
    connect_time: Duration,
    granted: Settings,
}

impl PageConnection for TalkConnection<'_> {
    fn bring(&mut self, object: &PageObject) -> Result<FetchedObject, PageStop> {
        let answer = u32::try_from(object.size.get()).unwrap_or(u32::MAX);
        let asked = self.talk.ask(Record::Exchange { request: REQUEST, answer });
        let taken = asked.and_then(|()| self.talk.take(u64::from(answer), &"an object of the page"));
        let (first_byte_ns, done_ns) = taken.map_err(|finish| match (finish, self.talk.missing) {
            (Finish::Corrupt(at), Some(bytes)) => PageStop::Missing { at, bytes },
            (finish, _) => PageStop::Finish(finish),
        })?;
        Ok(FetchedObject { first_byte_ns, done_ns, bytes: object.size.get(), open: true })
    }

    fn close(self: Box<Self>) -> ConnectionEnd {
        let info = TcpInfo::read(self.talk.stream()).unwrap_or_default();
        let cancel = self.talk.cancel();
        crate::work::close(&mut self.talk.into_stream(), cancel);
        ConnectionEnd { connect_time: self.connect_time, granted: self.granted, info }
    }
}
