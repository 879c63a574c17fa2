use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use wt_load::page::PageMemory;
use wt_load::{Reference, Url};
use wt_sys::resolve::{ResolveError, resolve_unless};
use wt_trial::Cancel;

/// A remote host: its address, and what is known of it.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where.
    pub url: Url,
    /// Where its name led to.
    pub peer: SocketAddr,
    /// What a person wrote about it.
    pub comment: String,
    /// What its payload was when it came first.
    pub(crate) reference: Reference,
    /// What the objects of a page were when they came first.
    pub(crate) memory: Arc<PageMemory>,
}

/// Why a name leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// The resolver says no.
    #[error("can't find the address of {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        source: ResolveError,
    },
    /// It has addresses, but not of this version of IP.
    #[error("{host} has no IPv{version} address")]
    Version {
        /// The name.
        host: String,
        /// 4 or 6.
        version: u8,
    },
}

/// Addresses of one name that are tried.
const MOST_ADDRESSES: usize = 4;

/// Those that a name leads to, of one version of IP if that is asked for; at least one.
fn addresses(url: &Url, v6: Option<bool>, cancel: &Cancel) -> Result<Vec<SocketAddr>, FindError> {
    let failed = |source| FindError::Resolve { host: url.host.clone(), source };
    let mut found = resolve_unless(&url.host, url.port, || cancel.is_cancelled()).map_err(failed)?;
    found.retain(|address| v6.is_none_or(|v6| address.is_ipv6() == v6));
    if found.is_empty() {
        let version = if v6 == Some(true) { 6 } else { 4 };
        return Err(FindError::Version { host: url.host.clone(), version });
    }
    Ok(found)
}

impl Target {
    /// Looks the name up; `v6` asks for one version of IP.
    ///
    /// # Errors
    /// [`FindError`].
    pub fn find(url: Url, v6: Option<bool>, cancel: &Cancel) -> Result<Self, FindError> {
        let peer = addresses(&url, v6, cancel)?.swap_remove(0);
        Ok(Self::at(url, peer))
    }

    /// Looks the name up; one target for each of its addresses, the resolver's first choice first, four at most.
    ///
    /// # Errors
    /// [`FindError`].
    pub fn candidates(url: &Url, v6: Option<bool>, cancel: &Cancel) -> Result<Vec<Self>, FindError> {
        Ok(addresses(url, v6, cancel)?
            .into_iter()
            .take(MOST_ADDRESSES)
            .map(|peer| Self::at(url.clone(), peer))
            .collect())
    }

    fn at(url: Url, peer: SocketAddr) -> Self {
        Self { url, peer, comment: String::new(), reference: Reference::new(), memory: Arc::default() }
    }

    /// The same with what a person wrote about it.
    #[must_use]
    pub fn commented(self, comment: String) -> Self {
        Self { comment, ..self }
    }

    /// Header bytes of IP and TCP without options.
    #[must_use]
    pub fn headers(&self) -> u64 {
        if self.peer.is_ipv6() { 60 } else { 40 }
    }

    /// Whether it is near: see [`is_near`].
    #[must_use]
    pub fn is_near(&self) -> bool {
        is_near(self.peer.ip())
    }
}

/// Whether an address is so near that nobody else is disturbed: this host, or a network that isn't the Internet.
///
/// # Source
/// RFC 6890: the addresses that aren't globally reachable.
#[must_use]
pub fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || (a == 198 && b & 0xFE == 18)
        }
        IpAddr::V6(ip) => {
            let [a, b, c, ..] = ip.segments();
            // 2001:2::/48 is for benchmarks.
            ip.is_loopback() || a & 0xFE00 == 0xFC00 || a & 0xFFC0 == 0xFE80 || (a, b, c) == (0x2001, 2, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_far_are_told_apart() {
        for (host, near) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("198.19.0.1", true),
            ("198.20.0.1", false),
            ("192.0.2.1", false),
            ("[::1]", true),
            ("[fd00::1]", true),
            ("[2001:2:0:19::1]", true),
            ("[2001:db8::1]", false),
        ] {
            let target = Target::find(format!("http://{host}/").parse().unwrap(), None, &Cancel::new()).unwrap();
            assert_eq!(target.is_near(), near, "{host}");
        }
    }

    #[test]
    fn a_version_of_ip_that_it_lacks_is_named() {
        let error = Target::find("http://127.0.0.1/".parse().unwrap(), Some(true), &Cancel::new()).unwrap_err();
        assert_eq!(error.to_string(), "127.0.0.1 has no IPv6 address");
    }
}
