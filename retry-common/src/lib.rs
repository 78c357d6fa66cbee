//! Every decision of retry-agent, pure: no clock, no map, no allocation, no panic.
//!
//! The kernel side, the tests and the tools run exactly this code. A reader may follow one attempt through
//! the modules in this order: [`tcp`] (is it new data?) → [`http1`] (which request is it?) →
//! [`recogniser`] (is it a retry, and by what evidence?) → [`budget`] (may one more retry pass?) →
//! [`judge`] (pass, deny or would deny) → [`tcp::reflect`] (how a denied request is turned round).
//! [`abi`] holds what kernel and user space say to each other.
#![no_std]
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(any(test, feature = "user"))]
extern crate std;

pub mod abi;
pub mod answer;
pub mod budget;
pub mod hash;
pub mod http1;
pub mod judge;
pub mod recogniser;
pub mod tcp;
