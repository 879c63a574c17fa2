//! The only crate that talks to the kernel without a net: sockets, namespaces, devices, netlink, clocks.
