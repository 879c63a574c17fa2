//! The program over the lab's paths: emulated links, real kernels at both ends.

#[path = "../common/mod.rs"]
mod common;

mod capture;
mod cdn;
mod crash;
mod effect;
mod first_window;
mod ftp;
mod golden;
mod journal;
mod lab;
mod lab_outside;
mod live;
mod own_server;
mod probe;
mod sessions;
mod single;
mod studies;
mod tune;
mod tutorial;
mod workloads;
