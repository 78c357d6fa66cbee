//! Empty: only there so that `retry-agent` can depend on this package, which makes cargo rebuild the kernel
//! object (the binary) when it changes.
#![no_std]
