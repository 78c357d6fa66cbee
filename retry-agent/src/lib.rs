//! The agent's library: everything behind its one binary.
//!
//! `cli` → `cmd` → { `kernel`, `workload`, `report`, `metrics` } → `spec`. Only `kernel` knows aya.
#![deny(unsafe_code)]

pub mod cgroup;
pub mod cli;
pub mod cmd;
pub mod config;
pub mod kernel;
pub mod metrics;
pub mod report;
pub mod session;
pub mod spec;
pub mod workload;
