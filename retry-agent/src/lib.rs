//! The agent's library: everything behind its one binary.
#![deny(unsafe_code)]

pub mod kernel;
