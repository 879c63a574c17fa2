//! What depends on kernels, stacks and congestion controls that are there.

#[path = "../common/mod.rs"]
mod common;

mod cc;
mod connections;
mod probe_kernel;
mod stacks;
mod traffic;
mod traffic_beside;
mod traffic_edges;
mod traffic_without_bpf;
mod virtual_time;
