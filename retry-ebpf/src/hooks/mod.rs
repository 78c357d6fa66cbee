//! The programs.
//!
//! | program | attach point | kernel | reads | writes |
//! |---|---|---|---|---|
//! | `begin_connect4`, `begin_connect6` | `cgroup/connect4`, `6` | 5.17 | CONFIG POLICIES ASSIGNMENTS | EDGES FAILURES CONNECTIONS |
//! | `judge_request` | `cgroup_skb/egress` | 5.17 | as above, HEADERS | EDGES FAILURES CONNECTIONS DENIED |
//! | `read_answer` | `cgroup_skb/ingress` | 5.17 | as above | EDGES FAILURES CONNECTIONS |
//! | `follow_connection` | `sock_ops` | 5.17 | CONFIG | EDGES FAILURES CONNECTIONS |
//! | `reflect_denied` | tcx or clsact egress | 5.17 | ANSWERS LAST_DENIAL | DENIED CONNECTIONS |
//! | `shield_denied` | tcx or clsact ingress | 5.17 | DENIED LAST_DENIAL | |
//!
//! 5.17 brought `bpf_loop`; 6.1 is the oldest kernel they are tested on.

mod connect;
mod egress;
mod ingress;
mod reflect;
mod sock_ops;
