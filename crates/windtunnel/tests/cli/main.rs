//! The program as people run it, without a path: what is asked, answered, stored and refused.

#[path = "../common/mod.rs"]
mod common;

mod analyse;
mod completions;
mod crowd;
mod exports;
mod files_of_others;
mod first_window;
mod fleet;
mod fleet_agents;
mod fleet_apply;
mod fleet_away;
mod fleet_owner;
mod fleet_policy;
mod hostile;
mod model;
mod overhead;
mod packages;
mod page;
mod report;
mod restore;
mod screen;
mod serve;
mod serve_floods;
mod settings;
mod settings_check;
mod settings_hooks;
mod settings_others;
mod settings_routes;
mod settings_whole;
mod studies;
mod traffic;
mod web;
mod web_attacks;
mod web_door;
mod web_fleet;
mod web_floods;
