use crate::error::check;
use crate::{SysError, SysResult};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

const ETHTOOL_GDRVINFO: u32 = 0x03;
const ETHTOOL_GRINGPARAM: u32 = 0x10;
const ETHTOOL_SRINGPARAM: u32 = 0x11;
const ETHTOOL_GSTRINGS: u32 = 0x1b;
const ETHTOOL_GSSET_INFO: u32 = 0x37;
const ETHTOOL_GFEATURES: u32 = 0x3a;
const ETHTOOL_SFEATURES: u32 = 0x3b;
const ETHTOOL_GLINKSETTINGS: u32 = 0x4c;
/// The set of strings that names features.
const ETH_SS_FEATURES: u32 = 4;
/// Length of a name in a set.
const ETH_GSTRING_LEN: usize = 32;
/// More names than this aren't believed; Linux has about 70.
const MOST_FEATURES: usize = 1024;

/// Questions to drivers, as ethtool(8) asks them.
///
/// # Source
/// linux/ethtool.h.
#[derive(Debug)]
pub struct Ethtool(OwnedFd);

/// Which driver runs a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Driver {
    /// Its name.
    pub name: String,
    /// Its version; the kernel's for drivers in the kernel's tree.
    pub version: String,
    /// Version of the device's firmware, empty if it has none.
    pub firmware: String,
    /// Where the device is plugged in.
    pub bus: String,
}

/// What was agreed with the other end of the cable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkMode {
    /// Mbit/s; `None` while there is no link, or where it means nothing.
    pub speed_mbps: Option<u32>,
    /// Whether both may send at once; `None` if unknown.
    pub full_duplex: Option<bool>,
}

/// Descriptors in the rings between driver and device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rings {
    /// To receive.
    pub rx: u32,
    /// At most.
    pub rx_max: u32,
    /// To send.
    pub tx: u32,
    /// At most.
    pub tx_max: u32,
}

/// One offload of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Feature {
    /// Whether it works now.
    pub active: bool,
    /// Whether somebody wants it, the driver permitting.
    pub wanted: bool,
    /// Whether it can be switched at all.
    pub changeable: bool,
}

impl Ethtool {
    /// Opens the socket through which drivers of this thread's network namespace are asked.
    ///
    /// # Errors
    /// [`SysError`] when the process has no descriptors left.
    pub fn open() -> SysResult<Self> {
        // SAFETY: socket takes numbers.
        let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
        let fd = check(fd, || "open a socket for ethtool".to_owned())?;
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sends `words` to the driver, which answers in their place. Every structure of ethtool is made of whole words.
    ///
    /// # Safety
    /// There must be as many words as the structure has that the first of them names, the fields that say how much follows
    /// included.
    unsafe fn call(&self, device: &str, words: &mut [u32], doing: &str) -> SysResult<i32> {
        #[repr(C)]
        struct Request {
            name: [u8; libc::IFNAMSIZ],
            data: *mut u32,
            /// `struct ifreq` is larger than what ethtool uses of it.
            rest: [u64; 2],
        }
        const SIOCETHTOOL: libc::c_ulong = 0x8946;
        let mut name = [0; libc::IFNAMSIZ];
        let bytes = device.as_bytes();
        if bytes.len() >= name.len() {
            return Err(crate::link::no_such_device(device));
        }
        name[..bytes.len()].copy_from_slice(bytes);
        let mut request = Request { name, data: words.as_mut_ptr(), rest: [0; 2] };
        // SAFETY: `request` is laid out as `struct ifreq` with a pointer in its union; `words` outlives the call, and the
        // caller vouches for its length.
        let answer = unsafe { libc::ioctl(self.0.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) };
        check(answer, || format!("{doing} of {device}"))
    }

    /// The driver of a device.
    ///
    /// # Errors
    /// [`SysError`]; `EOPNOTSUPP` when the driver doesn't say.
    pub fn driver(&self, device: &str) -> SysResult<Driver> {
        let mut words = [0; 49];
        words[0] = ETHTOOL_GDRVINFO;
        // SAFETY: `struct ethtool_drvinfo` has 49 words.
        unsafe { self.call(device, &mut words, "ask for the driver") }?;
        let text = |at: usize| text(&words[1 + at * 8..9 + at * 8]);
        let or_nothing = |text: String| if text == "N/A" { String::new() } else { text };
        Ok(Driver { name: text(0), version: text(1), firmware: or_nothing(text(2)), bus: or_nothing(text(3)) })
    }

    /// Speed and duplex of a device.
    ///
    /// # Errors
    /// [`SysError`]; `EOPNOTSUPP` for devices without a cable.
    pub fn link_mode(&self, device: &str) -> SysResult<LinkMode> {
        /// Words of the structure before the masks of modes, and at most as many words in each of three masks.
        const HEAD: usize = 12;
        const MASK: usize = 127;
        const UNKNOWN: u32 = u32::MAX;
        let mut words = [0; HEAD + 3 * MASK];
        words[0] = ETHTOOL_GLINKSETTINGS;
        // SAFETY: `struct ethtool_link_settings` has 12 words, and three masks of at most 127 words follow.
        unsafe { self.call(device, &mut words, "ask for the speed") }?;
        // The first call tells how many words a mask has, as a negative number; the second is answered.
        let size = i8::from_ne_bytes([words[3].to_ne_bytes()[3]]);
        if size < 0 {
            words = [0; HEAD + 3 * MASK];
            words[0] = ETHTOOL_GLINKSETTINGS;
            words[3] = u32::from_ne_bytes([0, 0, 0, size.unsigned_abs()]);
            // SAFETY: `struct ethtool_link_settings` has 12 words, and three masks of at most 127 words follow.
            unsafe { self.call(device, &mut words, "ask for the speed") }?;
        }
        let full_duplex = match words[2].to_ne_bytes()[0] {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        };
        Ok(LinkMode { speed_mbps: Some(words[1]).filter(|speed| *speed != UNKNOWN && *speed != 0), full_duplex })
    }

    /// Ring sizes of a device.
    ///
    /// # Errors
    /// [`SysError`]; `EOPNOTSUPP` for devices without rings.
    pub fn rings(&self, device: &str) -> SysResult<Rings> {
        let words = self.ring_words(device)?;
        Ok(Rings { rx_max: words[1], tx_max: words[4], rx: words[5], tx: words[8] })
    }

    fn ring_words(&self, device: &str) -> SysResult<[u32; 9]> {
        let mut words = [0; 9];
        words[0] = ETHTOOL_GRINGPARAM;
        // SAFETY: `struct ethtool_ringparam` has 9 words.
        unsafe { self.call(device, &mut words, "ask for the ring sizes") }?;
        Ok(words)
    }

    /// Sets ring sizes; most drivers take the device down for a moment.
    ///
    /// # Errors
    /// [`SysError`]; `EINVAL` beyond the maximum.
    pub fn set_rings(&self, device: &str, rx: u32, tx: u32) -> SysResult<()> {
        let mut words = self.ring_words(device)?;
        (words[0], words[5], words[8]) = (ETHTOOL_SRINGPARAM, rx, tx);
        // SAFETY: `struct ethtool_ringparam` has 9 words.
        unsafe { self.call(device, &mut words, "set the ring sizes") }.map(drop)
    }

    /// The offloads of a device by the kernel's names: `tx-tcp-segmentation`, `rx-gro`, …
    ///
    /// # Errors
    /// [`SysError`].
    pub fn features(&self, device: &str) -> SysResult<BTreeMap<String, Feature>> {
        let names = self.feature_names(device)?;
        let words = self.feature_words(device, names.len())?;
        let feature = |(at, name): (usize, String)| {
            let bit = |field: usize| words[2 + at / 32 * 4 + field] >> (at % 32) & 1 == 1;
            (name, Feature { active: bit(2), wanted: bit(1), changeable: bit(0) && !bit(3) })
        };
        Ok(names.into_iter().enumerate().filter(|(_, name)| !name.is_empty()).map(feature).collect())
    }

    /// Switches one offload. The kernel may grant less than is wanted, or switch others with it.
    ///
    /// # Errors
    /// [`SysError`]; `EINVAL` for a name that the kernel doesn't know.
    pub fn set_feature(&self, device: &str, name: &str, on: bool) -> SysResult<()> {
        let doing = format!("switch {name} {}", if on { "on" } else { "off" });
        let names = self.feature_names(device)?;
        let at = names.iter().position(|known| known == name);
        let at = at.ok_or_else(|| crate::rtattr::invalid(&format!("{doing} of {device}")))?;
        let blocks = names.len().div_ceil(32);
        let mut words = vec![0; 2 + 2 * blocks];
        (words[0], words[1]) = (ETHTOOL_SFEATURES, u32::try_from(blocks).unwrap_or(0));
        words[2 + at / 32 * 2] = 1 << (at % 32);
        words[3 + at / 32 * 2] = u32::from(on) << (at % 32);
        // SAFETY: `struct ethtool_sfeatures` has 2 words, and 2 for each block that the second one counts.
        unsafe { self.call(device, &mut words, &doing) }.map(drop)
    }

    fn feature_words(&self, device: &str, count: usize) -> SysResult<Vec<u32>> {
        let blocks = count.div_ceil(32);
        let mut words = vec![0; 2 + 4 * blocks];
        (words[0], words[1]) = (ETHTOOL_GFEATURES, u32::try_from(blocks).unwrap_or(0));
        // SAFETY: `struct ethtool_gfeatures` has 2 words, and 4 for each block that the second one counts.
        unsafe { self.call(device, &mut words, "ask for the offloads") }?;
        Ok(words)
    }

    fn feature_names(&self, device: &str) -> SysResult<Vec<String>> {
        let doing = "ask for the names of the offloads";
        let mut info = [ETHTOOL_GSSET_INFO, 0, 1 << ETH_SS_FEATURES, 0, 0];
        // SAFETY: `struct ethtool_sset_info` has 4 words, and one follows for each bit of its mask.
        unsafe { self.call(device, &mut info, doing) }?;
        let count = info[4] as usize;
        if count > MOST_FEATURES {
            return Err(SysError {
                doing: format!("{doing} of {device}"),
                source: std::io::Error::from(std::io::ErrorKind::InvalidData),
            });
        }
        let mut words = vec![0; 3 + count * ETH_GSTRING_LEN / 4];
        (words[0], words[1], words[2]) = (ETHTOOL_GSTRINGS, ETH_SS_FEATURES, info[4]);
        // SAFETY: `struct ethtool_gstrings` has 3 words, and 8 for each name that the third one counts.
        unsafe { self.call(device, &mut words, doing) }?;
        Ok(words[3..].chunks_exact(ETH_GSTRING_LEN / 4).map(text).collect())
    }
}

/// The text in words, up to the first zero.
fn text(words: &[u32]) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::Ethtool;

    #[test]
    fn the_loopback_device_names_its_offloads() {
        let ethtool = Ethtool::open().unwrap();
        let features = ethtool.features("lo").unwrap();
        let gro = features.get("rx-gro").unwrap();
        assert!(gro.changeable, "{gro:?}");
        assert!(ethtool.features("no-such-device").is_err());
        assert!(ethtool.driver("a-name-that-is-far-too-long-for-a-device").is_err());
    }
}
