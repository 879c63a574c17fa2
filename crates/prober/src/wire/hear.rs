//! What comes back, as answers to probes.

use super::{Mark, Reply, Wire};
use std::net::IpAddr;
use std::time::Duration;
use wt_probe::codec::{self, TcpHeard, Token};
use wt_probe::{ProbeAnswer, Quote, Time};
use wt_sys::probe::{ProbeSocket, ReceivedPacket};

impl Wire {
    /// All that has been heard; `SynAck`s as they are, for only the caller knows the connection.
    pub(crate) fn hear(&self, mut each: impl FnMut(Reply), mut handshake: impl FnMut(IpAddr, u16, TcpHeard, Time)) {
        let mut buffer = vec![0u8; 65_536];
        if let Some(raw) = &self.raw {
            drain(
                |buffer| raw.receive(buffer),
                &mut buffer,
                |received, bytes| {
                    let Some(from) = received.from.map(|from| from.ip()) else { return };
                    let Some(heard) = codec::read_icmp(bytes, from, received.ttl, self.ident) else { return };
                    each(Reply {
                        target: heard.target,
                        mark: Mark::Token(heard.token),
                        at: Duration::from_nanos(received.at_ns),
                        from: Some(from),
                        said: heard.said,
                    });
                },
            );
        }
        if let Some(ping) = &self.ping {
            drain(
                |buffer| ping.receive(buffer),
                &mut buffer,
                |received, bytes| {
                    let (Some(from), Some(seq)) = (received.from.map(|from| from.ip()), word(bytes, 6)) else { return };
                    each(Reply {
                        target: from,
                        mark: Mark::Token(Token::Echo(seq)),
                        at: Duration::from_nanos(received.at_ns),
                        from: Some(from),
                        said: ProbeAnswer::Reached { ttl: received.ttl },
                    });
                },
            );
            let mark = |bytes: &[u8]| Some(Mark::Token(Token::Echo(word(bytes, 6)?)));
            self.errors(ping, &mut buffer, mark, &mut each);
        }
        self.errors(&self.udp, &mut buffer, |bytes| Some(Mark::Token(Token::Number(word(bytes, 0)?))), &mut each);
        if let Some(tcp) = &self.tcp {
            let ports = [tcp.main.port(), tcp.side.port()];
            drain(
                |buffer| tcp.socket.receive(buffer),
                &mut buffer,
                |received, bytes| {
                    let Some(from) = received.from.map(|from| from.ip()) else { return };
                    let Some(((_, port), heard)) = codec::read_tcp(bytes, self.v6) else { return };
                    if !ports.contains(&port) {
                        return;
                    }
                    let at = Duration::from_nanos(received.at_ns);
                    if let TcpHeard::Duplicate { start } = heard {
                        let mark = Mark::Token(Token::Tcp { port, seq: start });
                        let said = ProbeAnswer::Reached { ttl: received.ttl };
                        each(Reply { target: from, mark, at, from: Some(from), said });
                    } else {
                        handshake(from, port, heard, at);
                    }
                },
            );
        }
        // Whatever a UDP service may say back is an answer to nothing that we count.
        drain(|buffer| self.udp.receive(buffer), &mut buffer, |_, _| {});
    }

    fn errors(
        &self,
        socket: &ProbeSocket,
        buffer: &mut [u8],
        mark: impl Fn(&[u8]) -> Option<Mark>,
        each: &mut impl FnMut(Reply),
    ) {
        drain(
            |buffer| socket.receive_error(buffer),
            buffer,
            |received, bytes| {
                let (Some(error), Some(target)) = (received.error, received.from.map(|to| to.ip())) else { return };
                let (Some(mark), true) = (mark(bytes), error.icmp) else { return };
                let reached = error.offender == Some(target) && error.code == codec::port_unreachable(self.v6);
                let said = match (self.v6, error.kind, error.code) {
                    (false, 3, 4) | (true, 2, _) => ProbeAnswer::TooBig { mtu: error.info },
                    (false, 11, 0) | (true, 3, 0) => ProbeAnswer::Expired { quote: Quote::default() },
                    (false, 3, _) | (true, 1, _) if reached => ProbeAnswer::Reached { ttl: received.ttl },
                    (false, 3, code) | (true, 1, code) => ProbeAnswer::Unreachable { code },
                    _ => return,
                };
                each(Reply { target, mark, at: Duration::from_nanos(received.at_ns), from: error.offender, said });
            },
        );
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

/// Reads until there is nothing, or a fair share of it.
fn drain(
    mut receive: impl FnMut(&mut [u8]) -> wt_sys::SysResult<Option<ReceivedPacket>>,
    buffer: &mut [u8],
    mut each: impl FnMut(ReceivedPacket, &[u8]),
) {
    for _ in 0..4096 {
        let Ok(Some(received)) = receive(buffer) else { return };
        each(received, &buffer[..received.len]);
    }
}
