//! What this machine says of itself.

/// Its name, if it has one.
pub(crate) fn host_name() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}
