use crate::rtattr::{attributes, push, u32_of};
use crate::{SysError, SysResult};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_GENERIC};

const GENL_ID_CTRL: u16 = 0x10;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const GET_STATION: u8 = 17;
const ATTR_IFINDEX: u16 = 3;
const ATTR_STA_INFO: u16 = 21;
const STA_INFO_SIGNAL: u16 = 7;
const STA_INFO_TX_BITRATE: u16 = 8;
const STA_INFO_RX_BITRATE: u16 = 14;
const RATE_INFO_BITRATE: u16 = 1;
const RATE_INFO_BITRATE32: u16 = 5;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const REQUEST: u16 = 1;
const DUMP: u16 = 0x300;
/// Bytes before the attributes: the header of netlink and that of generic netlink.
const HEADERS: usize = 20;
/// A kernel that answers more often than this talks of something else.
const MOST_ANSWERS: usize = 64;

/// How a Wi-Fi device hears its access point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Station {
    /// The signal's strength, dBm.
    pub signal_dbm: Option<i8>,
    /// The rate of the last packet that was sent, in units of 100 kbit/s.
    pub tx_100kbps: Option<u32>,
    /// The rate of the last packet that was received, in units of 100 kbit/s.
    pub rx_100kbps: Option<u32>,
}

/// What a Wi-Fi device says of its access point; `None` for devices without Wi-Fi, and for those without a connection.
///
/// # Errors
/// [`SysError`] when the kernel doesn't answer as it should.
///
/// # Source
/// linux/nl80211.h: `NL80211_CMD_GET_STATION`; linux/genetlink.h.
pub fn station(device: u32) -> SysResult<Option<Station>> {
    let doing = "ask for the state of Wi-Fi";
    let mut socket = Socket::new(NETLINK_GENERIC).map_err(SysError::io(doing))?;
    socket.bind_auto().map_err(SysError::io(doing))?;
    socket.connect(&SocketAddr::new(0, 0)).map_err(SysError::io(doing))?;
    let mut name = Vec::new();
    push(&mut name, CTRL_ATTR_FAMILY_NAME, b"nl80211\0");
    let family = ask(&socket, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 0, &name, doing)?;
    let family = family.iter().find_map(|body| {
        let id = attributes(body).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID)?.1;
        Some(u16::from_ne_bytes(id.get(..2)?.try_into().ok()?))
    });
    // Without it there is no Wi-Fi in this kernel.
    let Some(family) = family else { return Ok(None) };
    let mut index = Vec::new();
    push(&mut index, ATTR_IFINDEX, &device.to_ne_bytes());
    let answers = ask(&socket, family, GET_STATION, DUMP, &index, doing)?;
    Ok(answers.iter().find_map(|body| read(body)))
}

/// The attributes of each answer; none if the kernel says that there is nothing, or no such thing.
fn ask(socket: &Socket, kind: u16, command: u8, flags: u16, body: &[u8], doing: &str) -> SysResult<Vec<Vec<u8>>> {
    let mut message = Vec::with_capacity(HEADERS + body.len());
    message.extend(u32::try_from(HEADERS + body.len()).unwrap_or(0).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend((REQUEST | flags).to_ne_bytes());
    message.extend([0; 8]);
    message.extend([command, 1, 0, 0]);
    message.extend(body);
    socket.send(&message, 0).map_err(SysError::io(doing))?;
    let mut answers = Vec::new();
    for _ in 0..MOST_ANSWERS {
        let (datagram, _) = socket.recv_from_full().map_err(SysError::io(doing))?;
        for (kind, body) in messages(&datagram) {
            if matches!(kind, NLMSG_ERROR | NLMSG_DONE) {
                return Ok(answers);
            }
            answers.push(body.to_vec());
        }
        if flags & DUMP == 0 {
            break;
        }
    }
    Ok(answers)
}

/// The messages of a datagram: type, and what follows both headers.
fn messages(mut datagram: &[u8]) -> Vec<(u16, &[u8])> {
    let mut found = Vec::new();
    while let Some(head) = datagram.first_chunk::<16>() {
        let len = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let Some(message) = datagram.get(..len).filter(|message| message.len() >= 16) else { break };
        found.push((u16::from_ne_bytes([head[4], head[5]]), message.get(HEADERS..).unwrap_or_default()));
        datagram = datagram.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    found
}

/// The station that an answer is about.
fn read(body: &[u8]) -> Option<Station> {
    let info = attributes(body).find(|(kind, _)| *kind == ATTR_STA_INFO)?.1;
    let mut station = Station::default();
    for (kind, value) in attributes(info) {
        match kind {
            STA_INFO_SIGNAL => station.signal_dbm = value.first().map(|byte| i8::from_ne_bytes([*byte])),
            STA_INFO_TX_BITRATE => station.tx_100kbps = rate(value),
            STA_INFO_RX_BITRATE => station.rx_100kbps = rate(value),
            _ => {}
        }
    }
    Some(station)
}

/// The longer form where it is there: the shorter one ends at 6.5 Gbit/s.
fn rate(value: &[u8]) -> Option<u32> {
    let long = attributes(value).find(|(kind, _)| *kind == RATE_INFO_BITRATE32).and_then(|(_, value)| u32_of(value));
    long.or_else(|| {
        let short = attributes(value).find(|(kind, _)| *kind == RATE_INFO_BITRATE)?.1;
        Some(u32::from(u16::from_ne_bytes(short.get(..2)?.try_into().ok()?)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_station_is_read_as_the_kernel_writes_it() {
        let nested = |parts: &[(u16, &[u8])]| {
            let mut bytes = Vec::new();
            parts.iter().for_each(|(kind, value)| push(&mut bytes, *kind, value));
            bytes
        };
        let tx = nested(&[(RATE_INFO_BITRATE, &8667u16.to_ne_bytes()), (RATE_INFO_BITRATE32, &8667u32.to_ne_bytes())]);
        let rx = nested(&[(RATE_INFO_BITRATE, &540u16.to_ne_bytes())]);
        let info =
            nested(&[(1, &[0; 4]), (STA_INFO_SIGNAL, &[0xc9]), (STA_INFO_TX_BITRATE, &tx), (STA_INFO_RX_BITRATE, &rx)]);
        let body = nested(&[(ATTR_IFINDEX, &[3, 0, 0, 0]), (6, &[2; 6]), (ATTR_STA_INFO, &info)]);
        let station = read(&body).unwrap();
        assert_eq!((station.signal_dbm, station.tx_100kbps, station.rx_100kbps), (Some(-55), Some(8667), Some(540)));
    }

    #[test]
    fn a_device_without_wi_fi_has_no_station() {
        assert_eq!(station(1).unwrap(), None);
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (_, body) in messages(&bytes) {
                let _ = read(body);
            }
            let _ = read(&bytes);
        }
    }
}
