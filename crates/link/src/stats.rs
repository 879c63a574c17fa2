/// What a pipe has counted. Always `pushed + duplicated == delivered + dropped + held`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PipeStats {
    /// Packets that were pushed.
    pub pushed: u64,
    /// Packets that a stage added.
    pub duplicated: u64,
    /// Deliveries that `poll` has returned.
    pub delivered: u64,
    /// Drops that `poll` has returned.
    pub dropped: u64,
    /// Packets inside.
    pub held: u64,
    /// Each stage, in order.
    pub stages: Vec<StageStats>,
}

/// What a path has counted. Always `pushed + duplicated == delivered + dropped + held`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PathStats {
    /// Packets that hosts and routers sent.
    pub pushed: u64,
    /// Packets that a stage added.
    pub duplicated: u64,
    /// Deliveries that `poll` has returned.
    pub delivered: u64,
    /// Drops that `poll` has returned.
    pub dropped: u64,
    /// Packets inside.
    pub held: u64,
    /// Each link, from host A on.
    pub links: Vec<LinkStats>,
}

/// What a link has counted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LinkStats {
    /// The stages from A to B, in order.
    pub forward: Vec<StageStats>,
    /// The stages from B to A, in order.
    pub backward: Vec<StageStats>,
    /// The stations of the shared medium, if there is one: the one that sends from A to B, and the other.
    pub medium: Option<[MediumStats; 2]>,
}

/// What one stage has counted. A stage that knows a packet's departure when it arrives counts at the arrival, which may
/// be ahead of the clock when a queue or a delay lies before it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StageStats {
    /// Its name, as in configuration.
    pub name: &'static str,
    /// Packets that came in.
    pub entered: u64,
    /// Bytes that came in, of IP packets.
    pub bytes: u64,
    /// Packets that ended here.
    pub dropped: u64,
    /// Packets that it marked: congestion experienced, or corrupted.
    pub marked: u64,
    /// Packets that it added.
    pub duplicated: u64,
    /// Packets in its queue now, the one being sent included.
    pub queue_packets: u64,
    /// Bytes in its queue now, at the layer at which the queue counts.
    pub queue_bytes: u64,
    /// The most packets that were ever in its queue.
    pub max_queue_packets: u64,
    /// The most bytes that were ever in its queue.
    pub max_queue_bytes: u64,
}

impl StageStats {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }
}

/// What one station of a shared medium has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MediumStats {
    /// Frames that got through.
    pub sent: u64,
    /// Attempts that ended in a collision.
    pub collisions: u64,
    /// Frames that ended here: the queue was full, or sixteen attempts collided.
    pub dropped: u64,
    /// Packets that wait now, the one being sent included.
    pub queue_packets: u64,
    /// The most packets that ever waited.
    pub max_queue_packets: u64,
}
