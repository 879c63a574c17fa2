//! Workloads: the server and the clients that move the bytes, and what TCP said meanwhile.
