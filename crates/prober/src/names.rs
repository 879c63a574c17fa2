use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc;
use std::time::Duration;

/// The names of addresses, asked for all at once; what hasn't come when the time is up has none.
pub(crate) fn names_of(addresses: &[IpAddr], limit: Duration) -> HashMap<IpAddr, String> {
    let (sender, receiver) = mpsc::channel();
    let mut asked = 0;
    for address in addresses.iter().copied().take(256) {
        let sender = sender.clone();
        let asking = std::thread::Builder::new().stack_size(256 << 10).spawn(move || {
            // Whoever asked may have gone.
            let _ = sender.send((address, wt_sys::probe::name_of(address)));
        });
        asked += usize::from(asking.is_ok());
    }
    let end = wt_sys::clock::monotonic_ns().saturating_add(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
    let mut names = HashMap::new();
    for _ in 0..asked {
        let left = end.saturating_sub(wt_sys::clock::monotonic_ns());
        let Ok((address, name)) = receiver.recv_timeout(Duration::from_nanos(left)) else { break };
        if let Some(name) = name {
            names.insert(address, name);
        }
    }
    names
}
