use super::{Ip, OverheadArgs, Proto};
use crate::edge::Failure;
use serde_json::{Value, json};
use wt_units::{BitsPerSecond, Bytes};
use wt_wire::{Account, Framing, Headers, Part, Piece, SplitError};

/// The version of the JSON object.
pub(super) const SCHEMA_VERSION: u32 = 1;
/// The least MTU of IPv4 (RFC 791 section 3.2).
const LEAST_V4: u64 = 68;
/// The least MTU of IPv6 (RFC 8200 section 5).
const LEAST_V6: u64 = 1280;

/// All that is known of one stack.
pub(super) struct Answer {
    pub(super) framing: Framing,
    pub(super) headers: Headers,
    pub(super) proto: &'static str,
    pub(super) ip: u8,
    pub(super) mtu: Bytes,
    /// The payload that was asked for, or that fits.
    pub(super) account: Account,
    /// The first packet.
    pub(super) pieces: Vec<Piece>,
    /// The length of its outermost IP packet.
    pub(super) outer_len: Bytes,
    pub(super) max_mtu: Bytes,
    pub(super) best_mtu: Bytes,
    /// Full packets at the best MTU.
    pub(super) best: Account,
    pub(super) link_rate: Option<BitsPerSecond>,
    pub(super) wanted: Option<BitsPerSecond>,
    /// Full packets at every MTU of the sweep.
    pub(super) sweep: Vec<(Bytes, Account)>,
    pub(super) notes: Vec<String>,
}

impl Answer {
    /// Computes everything.
    pub(super) fn of(args: &OverheadArgs) -> Result<Self, Failure> {
        let (framing, headers) = (args.encap.clone(), args.headers()?);
        let sweep = sweep(args, headers)?;
        let given = args.mtu.or(args.sweep.map(|sweep| sweep.last));
        let most = given.or(args.max_mtu).unwrap_or_else(|| default_mtu(args));
        let max_mtu = args.max_mtu.unwrap_or(most);
        let best_mtu = framing.best_mtu(max_mtu, headers).map_err(too_small)?;
        // Of a sweep, or with only a maximum to go by, the best one is shown.
        let mtu = args.mtu.unwrap_or(if given.is_none() && args.max_mtu.is_none() { most } else { best_mtu });
        let payload = args.payload.map_or_else(|| headers.payload_of(mtu), Ok).map_err(too_small)?;
        let account = framing.account(headers, mtu, payload).map_err(too_small)?;
        let first_payload = headers.payload_of(mtu).map_err(too_small)?.min(payload);
        let at_mtu = framing.at_mtu(mtu);
        let answer = Self {
            headers,
            proto: if args.proto == Proto::Tcp { "tcp" } else { "udp" },
            ip: if args.ip == Ip::V4 { 4 } else { 6 },
            mtu,
            account,
            pieces: at_mtu.pieces(headers, first_payload),
            outer_len: at_mtu.outer_len(headers.header_len() + first_payload),
            max_mtu,
            best_mtu,
            best: framing.bulk(headers, best_mtu).map_err(too_small)?,
            link_rate: args.link_rate,
            wanted: args.goodput,
            sweep,
            notes: notes(args, &at_mtu, mtu, account),
            framing,
        };
        Ok(answer)
    }

    /// The documented object.
    pub(super) fn to_json(&self) -> Value {
        let account = &self.account;
        json!({
            "schema_version": SCHEMA_VERSION,
            "encap": self.framing.to_string(),
            "proto": self.proto,
            "ip": self.ip,
            "tcp_options_len": self.headers.options_len().get(),
            "mtu": self.mtu.get(),
            "payload_len": account.payload_len.get(),
            "packets": account.packets,
            "ip_len": account.ip_len.get(),
            "outer_len": self.outer_len.get(),
            "wire_len": account.wire_len.get(),
            "cells": account.cells,
            "overhead_ratio": account.overhead().map(wt_units::Ratio::get),
            "efficiency": account.efficiency().get(),
            "max_mtu": self.max_mtu.get(),
            "best_mtu": self.best_mtu.get(),
            "best_efficiency": self.best.efficiency().get(),
            "link_rate_bps": self.link_rate.map(BitsPerSecond::get),
            "goodput_bps": self.link_rate.map(|rate| account.goodput(rate).get()),
            "wanted_goodput_bps": self.wanted.map(BitsPerSecond::get),
            "needed_link_rate_bps": self.wanted.map(|rate| account.link_rate_for(rate).get()),
            "layers": self.pieces.iter().map(layer).collect::<Vec<_>>(),
            "sweep": self.sweep.iter().map(|(mtu, account)| step(*mtu, account)).collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}

fn layer(piece: &Piece) -> Value {
    let part = match piece.part {
        Part::Header => "header",
        Part::Payload => "payload",
        Part::Trailer => "trailer",
        Part::Padding => "padding",
        Part::Coding => "coding",
    };
    json!({ "name": piece.name, "part": part, "len": piece.len })
}

fn step(mtu: Bytes, account: &Account) -> Value {
    json!({
        "mtu": mtu.get(),
        "payload_len": account.payload_len.get(),
        "wire_len": account.wire_len.get(),
        "cells": account.cells,
        "efficiency": account.efficiency().get(),
    })
}

/// 1500, or inside a tunnel what the link leaves.
fn default_mtu(args: &OverheadArgs) -> Bytes {
    if args.encap.has_tunnel() { args.encap.fitting_mtu(args.link_mtu) } else { Bytes(1500) }
}

fn sweep(args: &OverheadArgs, headers: Headers) -> Result<Vec<(Bytes, Account)>, Failure> {
    let Some(range) = args.sweep else {
        return Ok(Vec::new());
    };
    (range.first.get()..=range.last.get())
        .map(Bytes)
        .map(|mtu| Ok((mtu, args.encap.bulk(headers, mtu).map_err(too_small)?)))
        .collect()
}

fn too_small(error: SplitError) -> Failure {
    Failure::usage(error.to_string()).hint("a larger MTU, or fewer bytes of options")
}

/// What is right by the arithmetic and may still surprise.
fn notes(args: &OverheadArgs, framing: &Framing, mtu: Bytes, account: Account) -> Vec<String> {
    let mut notes = Vec::new();
    let longest = framing.outer_len(mtu.min(account.ip_len)) + framing.shim_len();
    if longest > args.link_mtu && (framing.has_tunnel() || framing.shim_len() > Bytes(0)) {
        notes.push(format!(
            "a link with an MTU of {} does not carry the {} bytes that this makes of a packet: it fits with an MTU of \
             at most {}",
            args.link_mtu.get(),
            longest.get(),
            args.encap.fitting_mtu(args.link_mtu).get(),
        ));
    }
    let (least, rfc) = match args.ip {
        Ip::V4 => (LEAST_V4, "RFC 791 section 3.2"),
        Ip::V6 => (LEAST_V6, "RFC 8200 section 5"),
    };
    if mtu < Bytes(least) {
        notes.push(format!("no link for this version of IP has an MTU below {least} ({rfc})"));
    }
    if args.proto == Proto::Udp && account.packets > 1 {
        notes.push(format!("counted as {} datagrams, not as fragments of one", account.packets));
    }
    notes
}
