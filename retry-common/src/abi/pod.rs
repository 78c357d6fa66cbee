//! The only place where types are declared to be plain memory.
#![expect(unsafe_code, reason = "aya reads and writes map memory only through `Pod` types")]
use super::{Answer, Config, Edge, EdgeKey, Flow, FlowKey, Policy};

// SAFETY: `repr(C)`, integers only, every byte pattern is valid, no padding (sizes are asserted).
unsafe impl aya::Pod for EdgeKey {}
// SAFETY: as above.
unsafe impl aya::Pod for Edge {}
// SAFETY: as above.
unsafe impl aya::Pod for FlowKey {}
// SAFETY: as above.
unsafe impl aya::Pod for Flow {}
// SAFETY: as above.
unsafe impl aya::Pod for Policy {}
// SAFETY: as above.
unsafe impl aya::Pod for Config {}
// SAFETY: as above.
unsafe impl aya::Pod for Answer {}
