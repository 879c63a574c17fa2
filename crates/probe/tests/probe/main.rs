//! Searches, scans and traces over simulated paths, and bytes of strangers.

mod bytes;
mod common;
mod flows;
mod forgeries;
mod manners;
mod opening;
mod scan;
mod search;
mod trace;
