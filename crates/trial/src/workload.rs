use crate::Page;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;
use wt_units::{Bytes, format_duration};

/// Which way the payload goes, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
#[schema(as = TransferDirection)]
pub enum Direction {
    /// From the server to the client.
    Down,
    /// From the client to the server.
    Up,
}

/// How much a bulk transfer moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Amount {
    /// As much as goes in so long.
    Time(#[serde(with = "wt_units::serde_duration")] Duration),
    /// So many bytes of payload, however long it takes.
    Size(Bytes),
}

/// How often something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repeat {
    /// As often as goes in so long.
    Time(#[serde(with = "wt_units::serde_duration")] Duration),
    /// So often, however long it takes.
    Count(u32),
}

/// What the connection is asked to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Workload {
    /// One transfer in one direction as fast as it goes.
    Bulk {
        /// Which way.
        direction: Direction,
        /// How much.
        #[schema(value_type = HashMap<String, serde_json::Value>)]
        amount: Amount,
    },
    /// One transfer each way at once, over a connection each.
    Duplex {
        /// For so long.
        #[serde(with = "wt_units::serde_duration")]
        #[schema(value_type = String)]
        time: Duration,
    },
    /// One transfer of minutes, judged by its thirds: does it decay?
    Soak {
        /// Which way.
        direction: Direction,
        /// For so long.
        #[serde(with = "wt_units::serde_duration")]
        #[schema(value_type = String)]
        time: Duration,
    },
    /// Request and answer over one connection, one after the other.
    Transactions {
        /// Bytes of each request.
        request: Bytes,
        /// Bytes of each answer.
        response: Bytes,
        /// How long the client thinks before it asks again.
        #[serde(with = "wt_units::serde_duration")]
        #[schema(value_type = String)]
        think: Duration,
        /// How often.
        #[schema(value_type = HashMap<String, serde_json::Value>)]
        amount: Repeat,
    },
    /// Bursts of several answers one after the other over one connection, with pauses between the bursts: what one client
    /// of a busy server sees.
    Bursts {
        /// Bytes of each request.
        request: Bytes,
        /// Bytes of each answer of a burst, in order.
        blocks: Vec<Bytes>,
        /// Nothing happens for so long after each burst.
        #[serde(with = "wt_units::serde_duration")]
        #[schema(value_type = String)]
        pause: Duration,
        /// How many bursts.
        #[schema(value_type = HashMap<String, serde_json::Value>)]
        amount: Repeat,
    },
    /// Small messages at a steady pace, as a feed of market data sends them.
    Stream {
        /// Which way.
        direction: Direction,
        /// Bytes of each message.
        message: Bytes,
        /// From one message to the next.
        #[serde(with = "wt_units::serde_duration")]
        #[schema(value_type = String)]
        interval: Duration,
        /// For so long.
        #[serde(with = "wt_units::serde_duration")]
        #[schema(value_type = String)]
        time: Duration,
    },
    /// The objects of a page over cold connections.
    Page {
        /// Which objects, over how many connections.
        page: Page,
    },
    /// One transfer beside others that have the current settings.
    Competing {
        /// Which way.
        direction: Direction,
        /// How many others.
        rivals: u32,
        /// For so long.
        #[serde(with = "wt_units::serde_duration")]
        #[schema(value_type = String)]
        time: Duration,
    },
    /// Round trips of small requests, first on the idle path, then beside a transfer that fills it.
    Load {
        /// Which way the transfer goes.
        direction: Direction,
        /// For so long, the idle part not counted.
        #[serde(with = "wt_units::serde_duration")]
        #[schema(value_type = String)]
        time: Duration,
    },
}

/// What is compared between settings. Larger is always better; people are told the figure that they know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Scale {
    /// Payload over time. People are told bit/s.
    Goodput,
    /// The same where the payload is fixed, told as the time that it took.
    Time,
    /// Exchanges of fixed size over the time that was spent waiting for them, told as exchanges a second.
    Rate,
    /// One over the lateness that 99 % of the messages keep below, told as that lateness.
    Lateness,
    /// Round trips a minute under load.
    Responsiveness,
}

impl Workload {
    /// Whether it uploads a number of bytes: how long that took depends on whose clock it is timed by.
    #[must_use]
    pub fn is_upload_of_size(&self) -> bool {
        matches!(self, Self::Bulk { direction: Direction::Up, amount: Amount::Size(_) })
    }

    /// The word in flags and tables.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bulk { .. } => "bulk",
            Self::Duplex { .. } => "duplex",
            Self::Soak { .. } => "soak",
            Self::Transactions { .. } => "transactions",
            Self::Bursts { .. } => "bursts",
            Self::Stream { .. } => "stream",
            Self::Page { .. } => "page",
            Self::Competing { .. } => "competing",
            Self::Load { .. } => "load",
        }
    }

    /// Which way the payload goes that settings of a sender and of a receiver are about. A workload that goes both ways
    /// evenly counts as a download.
    #[must_use]
    pub fn direction(&self) -> Direction {
        match self {
            Self::Bulk { direction, .. }
            | Self::Soak { direction, .. }
            | Self::Stream { direction, .. }
            | Self::Competing { direction, .. }
            | Self::Load { direction, .. } => *direction,
            Self::Transactions { request, response, .. } if request > response => Direction::Up,
            Self::Transactions { .. } | Self::Bursts { .. } | Self::Page { .. } | Self::Duplex { .. } => {
                Direction::Down
            }
        }
    }

    /// Whether both ends take turns on one connection; then the client alone has the clock.
    #[must_use]
    pub fn is_talk(&self) -> bool {
        matches!(self, Self::Transactions { .. } | Self::Bursts { .. } | Self::Stream { .. })
    }

    /// How long it runs, if that is fixed.
    #[must_use]
    pub fn time(&self) -> Option<Duration> {
        match self {
            Self::Bulk { amount: Amount::Time(time), .. }
            | Self::Duplex { time }
            | Self::Soak { time, .. }
            | Self::Stream { time, .. }
            | Self::Competing { time, .. }
            | Self::Load { time, .. }
            | Self::Transactions { amount: Repeat::Time(time), .. }
            | Self::Bursts { amount: Repeat::Time(time), .. } => Some(*time),
            _ => None,
        }
    }

    /// How many bytes of payload it moves, if that is fixed.
    #[must_use]
    pub fn size(&self) -> Option<Bytes> {
        match self {
            Self::Bulk { amount: Amount::Size(size), .. } => Some(*size),
            Self::Transactions { request, response, amount: Repeat::Count(count), .. } => {
                Some(Bytes((request.get() + response.get()).saturating_mul(u64::from(*count))))
            }
            Self::Bursts { request, blocks, amount: Repeat::Count(count), .. } => {
                let burst: u64 = blocks.iter().map(|block| block.get() + request.get()).sum();
                Some(Bytes(burst.saturating_mul(u64::from(*count))))
            }
            Self::Stream { message, interval, time, .. } => {
                let count = time.as_nanos() / interval.as_nanos().max(1);
                Some(Bytes(message.get().saturating_mul(u64::try_from(count).unwrap_or(u64::MAX))))
            }
            Self::Page { page } => Some(Bytes(page.objects.iter().map(|object| object.size.get()).sum())),
            _ => None,
        }
    }

    /// What is compared.
    #[must_use]
    pub fn scale(&self) -> Scale {
        match self {
            Self::Bulk { .. } | Self::Duplex { .. } | Self::Soak { .. } | Self::Competing { .. } => Scale::Goodput,
            Self::Page { .. } => Scale::Time,
            Self::Bursts { amount: Repeat::Count(_), .. } => Scale::Time,
            Self::Transactions { .. } | Self::Bursts { .. } => Scale::Rate,
            Self::Stream { .. } => Scale::Lateness,
            Self::Load { .. } => Scale::Responsiveness,
        }
    }
}

impl std::fmt::Display for Workload {
    /// What each trial does, in words.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let way = match self.direction() {
            Direction::Down => "download",
            Direction::Up => "upload",
        };
        let long = |time: &Duration| format_duration(*time);
        match self {
            Self::Bulk { amount: Amount::Time(time), .. } => write!(f, "one bulk {way} for {}", long(time)),
            Self::Bulk { amount: Amount::Size(size), .. } => write!(f, "one bulk {way} of {}", size.human()),
            Self::Duplex { time } => write!(f, "a download and an upload at once for {}", long(time)),
            Self::Soak { time, .. } => write!(f, "one {way} of {}, judged by its thirds", long(time)),
            Self::Transactions { request, response, think, amount } => {
                let (request, response) = (request.human(), response.human());
                write!(f, "requests of {request} with answers of {response} over one connection")?;
                if !think.is_zero() {
                    write!(f, ", {} to think before each", long(think))?;
                }
                amount.write(f, "of them")
            }
            Self::Bursts { blocks, pause, amount, .. } => {
                let all: u64 = blocks.iter().map(|block| block.get()).sum();
                let (all, pause) = (Bytes(all).human(), long(pause));
                write!(f, "bursts of {} answers ({all} together) with {pause} between them", blocks.len())?;
                amount.write(f, "bursts")
            }
            Self::Stream { message, interval, time, direction } => {
                let who = if *direction == Direction::Down { "server" } else { "client" };
                let message = message.human();
                write!(f, "a message of {message} from the {who} every {} for {}", long(interval), long(time))
            }
            Self::Page { page } => write!(f, "{page}"),
            Self::Competing { rivals, time, .. } => {
                write!(f, "one {way} beside {rivals} with the current settings for {}", long(time))
            }
            Self::Load { direction, time } => {
                let way = if *direction == Direction::Down { "a download" } else { "an upload" };
                write!(f, "small round trips on the idle path, then beside {way} for {}", long(time))
            }
        }
    }
}

impl Repeat {
    fn write(self, f: &mut std::fmt::Formatter<'_>, of: &str) -> std::fmt::Result {
        match self {
            Self::Time(time) => write!(f, ", for {}", format_duration(time)),
            Self::Count(count) => write!(f, ", {count} {of}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_beside_a_download_or_an_upload() {
        let said = |direction| Workload::Load { direction, time: Duration::from_secs(4) }.to_string();
        assert!(said(Direction::Down).ends_with("then beside a download for 4s"), "{}", said(Direction::Down));
        assert!(said(Direction::Up).ends_with("then beside an upload for 4s"), "{}", said(Direction::Up));
    }
}
