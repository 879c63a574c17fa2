use crate::netlink::Netlink;
use crate::{SysError, SysResult};
use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NetlinkDeserializable, NetlinkHeader, NetlinkSerializable};
use std::convert::Infallible;

/// Times that a dump is read again when something changed while it was read.
const TORN_DUMPS: usize = 8;

/// A routing message as the kernel sent it, byte by byte: what isn't understood isn't lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawMessage {
    /// `RTM_…`.
    pub(crate) kind: u16,
    /// What follows the netlink header.
    pub(crate) body: Vec<u8>,
}

impl NetlinkSerializable for RawMessage {
    fn message_type(&self) -> u16 {
        self.kind
    }
    fn buffer_len(&self) -> usize {
        self.body.len()
    }
    fn serialize(&self, buffer: &mut [u8]) {
        buffer.copy_from_slice(&self.body);
    }
}

impl NetlinkDeserializable for RawMessage {
    type Error = Infallible;
    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, Infallible> {
        Ok(Self { kind: header.message_type, body: payload.to_vec() })
    }
}

impl Netlink {
    /// All messages of a dump that nothing changed under.
    pub(crate) fn raw_dump(&mut self, request: &RawMessage, doing: &str) -> SysResult<Vec<RawMessage>> {
        let mut left = TORN_DUMPS;
        loop {
            match self.exchange(request.clone(), NLM_F_DUMP, doing) {
                Err(error) if error.errno() == Some(libc::EAGAIN) && left > 0 => left -= 1,
                other => return other,
            }
        }
    }

    /// Changes something and waits until the kernel has done it.
    pub(crate) fn raw_change(&mut self, message: RawMessage, flags: u16, doing: &str) -> SysResult<()> {
        self.exchange(message, flags | NLM_F_ACK, doing).map(drop)
    }
}

/// The attributes of a message or of a nest: number and value. Stops at the first that doesn't fit.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    /// Without the bits that mark nests and byte order.
    const TYPE: u16 = 0x3fff;
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let head = rest.first_chunk::<4>()?;
        let length = usize::from(u16::from_ne_bytes([head[0], head[1]]));
        let kind = u16::from_ne_bytes([head[2], head[3]]) & TYPE;
        let value = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, value))
    })
}

/// Appends an attribute.
///
/// # Panics
/// Never: values are far shorter than the 64 KiB that an attribute can hold.
pub(crate) fn push(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = u16::try_from(value.len() + 4).unwrap_or(u16::MAX);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(&value[..usize::from(length) - 4]);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The number in an attribute of four bytes; longer ones are cut, shorter ones are none.
pub(crate) fn u32_of(value: &[u8]) -> Option<u32> {
    value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

/// The text in an attribute, without its final zero.
pub(crate) fn text_of(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

/// An error for a message that can't be made.
pub(crate) fn invalid(doing: &str) -> SysError {
    SysError { doing: doing.to_owned(), source: std::io::Error::from_raw_os_error(libc::EINVAL) }
}

#[cfg(test)]
mod tests {
    use super::{attributes, push};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_pushed_comes_back(list in prop::collection::vec((1_u16..0x3fff, prop::collection::vec(any::<u8>(), 0..40)), 0..10)) {
            let mut bytes = Vec::new();
            for (kind, value) in &list {
                push(&mut bytes, *kind, value);
            }
            let back: Vec<_> = attributes(&bytes).map(|(kind, value)| (kind, value.to_vec())).collect();
            prop_assert_eq!(back, list);
        }

        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(attributes(&bytes).count() <= 50);
        }
    }
}
