use crate::kept_object;
use crate::say_none;
use serde_json::Value;
use std::net::IpAddr;

kept_object! {
    /// What was seen of a trial on the wire, in `tcp_info`, and in the lab: each only where it was looked at, by its name in
    /// the journal. What other versions and imports say beside that is in `more`.
    pub struct Observed {
        /// The largest segment, bytes of payload.
        mss: u64,
        /// The largest IP packet, bytes.
        pmtu: u64,
        /// The sender's congestion control.
        cc: String,
        /// The widest window that the receiver advertised, bytes.
        rwin_max: u64,
        /// The shift of the receiver's window.
        window_scale: u64,
        /// Whether selective acknowledgements were agreed to.
        sack: bool,
        /// Whether timestamps were agreed to.
        timestamps: bool,
        /// Whether ECN was agreed to.
        ecn: bool,
        /// The smallest RTT, µs.
        min_rtt_us: u64,
        /// The RTT that the transfer lived with, µs.
        rtt_us: u64,
        /// Retransmitted segments.
        retransmits: u64,
        /// Segments with payload.
        segments: u64,
        /// Segments that came out of order.
        out_of_order: u64,
        /// Packets that a queue of the emulated path dropped.
        queue_drops: u64,
        /// Those of them that the queue's discipline dropped before it was full.
        aqm_drops: u64,
        /// Packets that arrived with "congestion experienced", which the emulated path had marked.
        ce_marks: u64,
        /// Packets that the emulated path lost at random.
        losses: u64,
        /// Packets that were too large for the emulated path.
        too_big: u64,
        /// By how much a packet left the lab late at most, µs.
        late_max_us: u64,
        /// What the lab's engine did, in its own form.
        lab: Value,
        /// The congestion window before anything was acknowledged, segments.
        initial_cwnd: u64,
        /// The receiver's window before anything was acknowledged, bytes.
        initial_rwnd_bytes: u64,
        /// By how much the sender of a stream was late by its own clock, µs.
        sender_late_us: u64,
        /// From the first SYN until the connection stood, µs.
        connect_us: u64,
        /// Bytes of the file that was fetched.
        length: u64,
        /// The server, where there are several.
        target: String,
        /// The address that served it, on the real path: a redirection may lead away from the one that was named.
        address: IpAddr,
        /// The link as it was before the trial, in its own form.
        link: Value,
        /// Whether the model's run was cut short.
        cut_short: bool,
        /// How often a loaded congestion control has repaired impossible values.
        guard_hits: u64,
        /// Samples whose congestion window is above all that the path holds.
        garbage_cwnd_samples: u64,
        /// The other flow, in its own form.
        beside: Value,
        /// The stack's name.
        stack: String,
        /// Its version.
        version: String,
        /// How long its adapter took, µs.
        took_us: u64,
        /// What the listener saw of it, in its own form.
        seen: Value,
        /// CPU time of its adapter, ns.
        cpu_ns: u64,
        /// The most memory that its adapter had, bytes.
        peak_bytes: u64,
        /// What its adapter set, in its own words.
        granted: Value,
        /// What its adapter couldn't set, in its own words.
        refused: Vec<String>,
        /// Whether all bytes came as they were sent: `ok`, `lost`, `corrupt`.
        integrity: String,
        /// Segments that the server retransmitted to it.
        server_retransmits: u64,
    }
}

/// What every tunnel sees of a connection; what it doesn't know is `None`, and written as such.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ObservedConnection {
    /// The largest segment, bytes of payload.
    pub mss: Option<u64>,
    /// The largest IP packet, bytes.
    pub pmtu: Option<u64>,
    /// The widest window that the receiver advertised, bytes.
    pub rwin_max: Option<u64>,
    /// The shift of the receiver's window.
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgements were agreed to.
    pub sack: bool,
    /// Whether timestamps were agreed to.
    pub timestamps: bool,
    /// Whether ECN was agreed to.
    pub ecn: bool,
    /// The smallest RTT, µs.
    pub min_rtt_us: Option<u64>,
    /// The RTT that the transfer lived with, µs.
    pub rtt_us: Option<u64>,
}

impl From<ObservedConnection> for Observed {
    fn from(connection: ObservedConnection) -> Self {
        let mut observed = Self {
            mss: connection.mss,
            pmtu: connection.pmtu,
            rwin_max: connection.rwin_max,
            window_scale: connection.window_scale.map(u64::from),
            sack: Some(connection.sack),
            timestamps: Some(connection.timestamps),
            ecn: Some(connection.ecn),
            min_rtt_us: connection.min_rtt_us,
            rtt_us: connection.rtt_us,
            ..Self::default()
        };
        say_none!(observed; mss, pmtu, rwin_max, window_scale, min_rtt_us, rtt_us);
        observed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_connection_does_not_tell_is_written_as_such() {
        let connection = ObservedConnection { mss: Some(1448), sack: true, ..ObservedConnection::default() };
        let observed = Observed { retransmits: Some(0), ..connection.into() };
        let written = json!({
            "mss": 1448, "pmtu": null, "rwin_max": null, "window_scale": null, "sack": true, "timestamps": false, "ecn": false,
            "min_rtt_us": null, "rtt_us": null, "retransmits": 0,
        });
        assert_eq!(serde_json::to_value(&observed).unwrap(), written);
        assert_eq!(serde_json::from_value::<Observed>(written).unwrap(), observed);
    }

    #[test]
    fn what_others_have_observed_is_kept() {
        let theirs =
            json!({"mss": "large", "rwin_max": 6e4, "colour": [1, null], "lab": {"late_us": []}, "link": null});
        let observed: Observed = serde_json::from_value(theirs.clone()).unwrap();
        assert_eq!((observed.mss, observed.rwin_max, &observed.link), (None, None, &None));
        assert_eq!(serde_json::to_value(&observed).unwrap(), theirs);
    }
}
