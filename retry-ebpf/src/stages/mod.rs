//! The steps that a packet goes through, in the order of their use.
//!
//! [`edge`] finds what is known of the edge and its policy, [`window`] shows the packet's bytes to a machine,
//! [`credit`] keeps the failures that explain retries, [`attempt`] judges one attempt, [`record`] writes down
//! how it ended, [`rewrite`] makes a reply of a packet.

pub mod attempt;
pub mod credit;
pub mod edge;
pub mod record;
pub mod rewrite;
pub mod window;
