//! What kernel and user space exchange: layouts, names and the one list of counters.
//!
//! All types are `repr(C)` with explicit padding, so that both sides, built by different compilers, agree;
//! each has its size asserted. A value from the other side is bytes until it was decoded.

mod connection;
mod counter;
mod edge;
mod event;
mod flow;
pub mod names;
#[cfg(feature = "user")]
mod pod;
mod policy;

pub use connection::{BUFFER_LEN, CARRY_LEN, Connection, Phase, Stream, Turn, WINDOW_LEN};
pub use counter::{EdgeCounter, FAILURE_STATUSES, Fail};
pub use edge::{Edge, EdgeKey, HOST_LEN, bpf_spin_lock};
pub use event::{Event, EventKind};
pub use flow::{Flow, FlowKey};
pub use policy::{ANSWER_LEN, Answer, Config, MAX_POLICIES, Mode, OVERFLOW_POLICY, Policy};
