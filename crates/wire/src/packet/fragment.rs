use super::Ipv4View;
use super::ViewError;
use super::ipv4::fill_checksum;

/// Why a packet can't be fragmented.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    /// It isn't a whole IPv4 packet.
    #[error(transparent)]
    NotIpv4(#[from] ViewError),
    /// Its sender forbids it: answer with [`frag_needed`](crate::frag_needed).
    #[error("the packet must not be fragmented")]
    DontFragment,
    /// Not even eight bytes of payload fit.
    #[error("an MTU of {mtu} has no room for a header of {header_len} bytes and 8 bytes of payload")]
    MtuTooSmall {
        /// The MTU.
        mtu: usize,
        /// The packet's header.
        header_len: usize,
    },
}

/// The fragments of an IPv4 packet, each at most `mtu` bytes; a packet that fits comes back as it is. A fragment can be
/// fragmented further.
///
/// # Errors
/// [`FragmentError`]; above all `DontFragment`.
///
/// # Source
/// RFC 791 section 3.2; only options with the copied flag go into later fragments (section 3.1).
pub fn fragment_ipv4(packet: &[u8], mtu: usize) -> Result<Vec<Vec<u8>>, FragmentError> {
    let view = Ipv4View::new(packet)?;
    if view.total_len() <= mtu {
        return Ok(vec![view.as_bytes().to_vec()]);
    }
    if view.dont_fragment() {
        return Err(FragmentError::DontFragment);
    }
    let room = |header: &[u8]| mtu.saturating_sub(header.len()) / 8 * 8;
    let later_header = later_header(&view);
    let mut header = view.header();
    if room(header) == 0 {
        return Err(FragmentError::MtuTooSmall { mtu, header_len: header.len() });
    }
    let mut rest = view.payload();
    let mut offset = view.fragment_offset();
    let mut fragments = Vec::new();
    while !rest.is_empty() {
        let fits = header.len() + rest.len() <= mtu;
        let (part, after) = rest.split_at(if fits { rest.len() } else { room(header) });
        fragments.push(fragment(header, part, offset, !after.is_empty() || view.more_fragments()));
        offset += part.len();
        rest = after;
        header = &later_header;
    }
    Ok(fragments)
}

/// One fragment with its lengths, offset and checksum.
fn fragment(header: &[u8], part: &[u8], offset: usize, more: bool) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(header.len() + part.len());
    bytes.extend_from_slice(header);
    bytes.extend_from_slice(part);
    // Both fit: parts of a packet are shorter than the packet, and offsets lie within 64 KiB.
    let total = (header.len() + part.len()) as u16;
    let field = (offset / 8) as u16 & 0x1fff | if more { 0x2000 } else { 0 };
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[6..8].copy_from_slice(&field.to_be_bytes());
    fill_checksum(&mut bytes[..header.len()]);
    bytes
}

/// The header of all fragments but the first: with the options that are to be copied.
fn later_header(view: &Ipv4View<'_>) -> Vec<u8> {
    let mut header = view.header()[..20].to_vec();
    let mut options = view.options();
    while let Some(&kind) = options.first() {
        let len = match kind {
            0 => break,
            1 => 1,
            _ => options.get(1).map_or(0, |len| usize::from(*len)),
        };
        let Some(option) = options.get(..len).filter(|option| !option.is_empty()) else {
            break;
        };
        if kind & 0x80 != 0 {
            header.extend_from_slice(option);
        }
        options = &options[len..];
    }
    header.resize(header.len().next_multiple_of(4), 0);
    header[0] = 0x40 | (header.len() / 4) as u8;
    header
}
