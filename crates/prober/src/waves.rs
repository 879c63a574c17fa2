//! Which targets are probed at once.

use crate::target::Target;
use std::collections::HashSet;
use std::net::IpAddr;

/// The numbers of targets that can be probed at once: of one version of IP, and each of another address, since what comes back is told
/// apart by addresses. Two names of one address come after each other.
pub(crate) fn waves(targets: &[Target]) -> Vec<Vec<usize>> {
    let mut waves: Vec<(bool, HashSet<IpAddr>, Vec<usize>)> = Vec::new();
    for (number, target) in targets.iter().enumerate() {
        let v6 = target.ip.is_ipv6();
        let free = waves.iter_mut().find(|(of, addresses, _)| *of == v6 && !addresses.contains(&target.ip));
        match free {
            Some((_, addresses, numbers)) => {
                addresses.insert(target.ip);
                numbers.push(number);
            }
            None => waves.push((v6, HashSet::from([target.ip]), vec![number])),
        }
    }
    waves.into_iter().map(|(.., numbers)| numbers).collect()
}

#[cfg(test)]
mod tests {
    use super::waves;
    use crate::target::Target;

    #[test]
    fn one_address_is_never_probed_twice_at_once() {
        let target = |ip: &str| Target {
            name: ip.to_owned(),
            ip: ip.parse().unwrap(),
            port: 80,
            source: ip.parse().unwrap(),
            mtu: 1500,
            device: "d0".to_owned(),
        };
        let targets = ["10.0.0.1", "10.0.0.2", "fd00::1", "10.0.0.1", "10.0.0.1", "fd00::1", "10.0.0.2"].map(target);
        assert_eq!(waves(&targets), [vec![0, 1], vec![2], vec![3, 6], vec![4], vec![5]]);
        assert!(waves(&[]).is_empty());
    }
}
