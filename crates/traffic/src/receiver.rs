//! What an experiment can't compare: settings that act on what the server receives, where its outcomes are of what it sends.

use crate::{ArmSettings, TrafficArm};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wt_units::Side;

/// Settings in which arms differ and that act on what the server receives. What is compared is what it sends, so that no figure, no
/// verdict and no guard of goodput is of their effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReceiverSettings {
    /// Their names, such as `initrwnd`.
    pub settings: Vec<String>,
    /// Whether the arms differ in nothing else: then no difference in what the server sends is to be expected, and none forecast.
    pub alone: bool,
    /// Both in a sentence or two.
    pub text: String,
}

impl ReceiverSettings {
    /// Those of an experiment's arms; `None` where the arms differ in none.
    #[must_use]
    pub fn of(arms: &[TrafficArm]) -> Option<Self> {
        Self::among(&arms.iter().map(|arm| &arm.settings).collect::<Vec<_>>())
    }

    /// Those in which some of these differ.
    pub(crate) fn among(all: &[&ArmSettings]) -> Option<Self> {
        let mut levels: BTreeMap<&str, (Side, Vec<String>)> = BTreeMap::new();
        for (name, level, side) in all.iter().flat_map(|settings| settings.sides()) {
            levels.entry(name).or_insert((side, Vec::new())).1.push(level);
        }
        let varies = |found: &[String]| found.len() < all.len() || found.windows(2).any(|two| two[0] != two[1]);
        let varied = levels.into_iter().filter(|(_, (_, found))| varies(found));
        let (received, others): (Vec<_>, Vec<_>) = varied.partition(|(_, (side, _))| match side {
            Side::Receiver => true,
            Side::Sender | Side::Own => false,
        });
        let settings: Vec<String> = received.into_iter().map(|(name, _)| name.to_owned()).collect();
        (!settings.is_empty()).then(|| Self { text: sentences(&settings), alone: others.is_empty(), settings })
    }

    /// `initrwnd acts`, `initrwnd and window-clamp act`.
    pub(crate) fn act(&self) -> String {
        acting(&self.settings)
    }

    /// What to do about a difference that isn't shown and never will be: `initrwnd` and others are named.
    pub(crate) fn instead(&self) -> String {
        format!("time uploads at their clients; what {} to them isn't compared here, however long it runs", self.does())
    }

    fn does(&self) -> String {
        let names = joined(&self.settings);
        if self.settings.len() == 1 { format!("{names} does") } else { format!("{names} do") }
    }
}

fn joined(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => names.concat(),
    }
}

fn acting(names: &[String]) -> String {
    format!("{} {}", joined(names), if names.len() == 1 { "acts" } else { "act" })
}

fn sentences(names: &[String]) -> String {
    let mut text = format!("What is compared is what the server sends; {} on what it receives.", acting(names));
    // tcp_rcv_space_adjust() in net/ipv4/tcp_input.c: the clamp follows the receive buffer, which nobody fixes here.
    if names.iter().any(|name| name == crate::SocketSetting::WindowClamp.name()) {
        text += " The kernel raises window-clamp again as a connection receives.";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn among(all: &[&str]) -> Option<ReceiverSettings> {
        let read: Vec<ArmSettings> = all.iter().map(|text| text.parse().unwrap()).collect();
        ReceiverSettings::among(&read.iter().collect::<Vec<_>>())
    }

    #[test]
    fn settings_of_what_a_server_receives_are_named_only_where_arms_differ_in_them() {
        for (arms, names, alone) in [
            (&["initrwnd=44", "initrwnd=3"][..], "initrwnd", true),
            (&["current settings", "delack-max=20ms"], "delack-max", true),
            (&["window-clamp=1MiB", "window-clamp=16KiB", "window-clamp=1MiB"], "window-clamp", true),
            (&["initrwnd=10 cc=cubic", "initrwnd=40 cc=bbr"], "initrwnd", false),
            (&["initrwnd=10 delack-max=20ms", "initrwnd=40"], "delack-max,initrwnd", true),
        ] {
            let found = among(arms).unwrap();
            assert_eq!((found.settings.join(","), found.alone), (names.to_owned(), alone), "{arms:?}");
            assert_eq!(found.text.contains("window-clamp"), names.contains("window-clamp"), "{}", found.text);
        }
        for arms in [
            &["cc=cubic initrwnd=40", "cc=bbr initrwnd=40"][..],
            &["initrwnd=10", "initrwnd=10"],
            &["initcwnd=10", "initcwnd=32 ecn=on pacing=20mbit notsent-lowat=16KiB rto-min=50ms cwnd-clamp=40"],
        ] {
            assert_eq!(among(arms), None, "{arms:?}");
        }
        let two = among(&["current settings", "initrwnd=40 window-clamp=1MiB"]).unwrap();
        assert!(two.text.contains("sends; initrwnd and window-clamp act on what it receives."), "{}", two.text);
    }
}
