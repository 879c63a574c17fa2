//! Transfers over loopback.

mod far;
mod hostile;
mod loopback;
mod page;
mod work;
