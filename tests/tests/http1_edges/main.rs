//! The edges of HTTP/1: requests cut anyhow over packets, of every size and framing. Each goes as it would without
//! the agent, is counted once, and its repetition after a failure is denied without harm.

mod connections;
mod framing;
mod row;
mod tunnels;
