//! Names of the kernel programs and maps, as the loader asks for them.

/// `cgroup/connect4`: an IPv4 `connect()` begins.
pub const CONNECT4: &str = "begin_connect4";
/// `cgroup/connect6`: an IPv6 `connect()` begins.
pub const CONNECT6: &str = "begin_connect6";
/// `cgroup_skb/egress`: a packet leaves a socket.
pub const EGRESS: &str = "judge_request";
/// `cgroup_skb/ingress`: a packet reaches a socket.
pub const INGRESS: &str = "read_answer";
/// `sock_ops`: a connection changes its state.
pub const SOCK_OPS: &str = "follow_connection";
/// `tc` egress: a packet of a denied request is turned round.
pub const REFLECT: &str = "reflect_denied";
/// `tc` ingress: the server's packets of a denied connection are answered with RST.
pub const SHIELD: &str = "shield_denied";

/// All programs, in the order in which they are loaded.
pub const PROGRAMS: [&str; 7] = [CONNECT4, CONNECT6, EGRESS, INGRESS, SOCK_OPS, REFLECT, SHIELD];

/// Array, one element: [`super::Config`]. Writer: agent.
pub const CONFIG: &str = "CONFIG";
/// Array: policy id → [`super::Policy`]. Writer: agent.
pub const POLICIES: &str = "POLICIES";
/// Array: policy id → [`super::Answer`]. Writer: agent.
pub const ANSWERS: &str = "ANSWERS";
/// Hash: [`super::EdgeKey`], also [`super::EdgeKey::any_of`] a workload or a destination → policy id (`u32`).
/// Writer: agent.
pub const ASSIGNMENTS: &str = "ASSIGNMENTS";
/// Hash: [`super::EdgeKey`] → [`super::Edge`]. Writer: kernel; the agent deletes idle edges.
pub const EDGES: &str = "EDGES";
/// LRU hash: edge and fingerprint → credits ([`crate::recogniser`]). Writer: kernel.
pub const FAILURES: &str = "FAILURES";
/// LRU hash: [`super::FlowKey`] → [`super::Flow`]. Writer: kernel.
pub const DENIED: &str = "DENIED";
/// Hash: [`crate::http1::name_hash`] of each volatile header → 1. Writer: agent, before the programs run.
pub const HEADERS: &str = "HEADERS";
/// Per-CPU array: [`super::Fail`] → count. Writer: kernel.
pub const FAILS: &str = "FAILS";
/// Ring buffer of [`super::Event`]. Writer: kernel.
pub const EVENTS: &str = "EVENTS";
/// Array, one element: an [`super::Edge`] of zeros from which new edges are made. Never written.
pub const BLANK_EDGE: &str = "BLANK_EDGE";

/// Array, one element: time of the last denial (ms, `u64`), so that no packet is looked up while there is none.
/// Writer: kernel.
pub const LAST_DENIAL: &str = "LAST_DENIAL";

/// Global: byte offset of `sk_shutdown` in the kernel's `struct sock` and the mask of its bits.
pub const SHUTDOWN_OFFSET: &str = "SHUTDOWN_OFFSET";
/// Global: random start of every hash, so that nobody can aim a collision.
pub const SEED: &str = "SEED";
