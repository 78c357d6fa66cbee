//! The kernel side: hooks, maps and the walk through a packet. What is decided is decided in `retry-common`.
#![cfg_attr(target_arch = "bpf", no_std, no_main)]
// Loads of any alignment are one BPF instruction; Rust has no other way to say so.
#![cfg_attr(target_arch = "bpf", feature(asm_experimental_arch))]
// The only way to the atomic instructions of BPF; see `atomic`.
#![cfg_attr(target_arch = "bpf", feature(core_intrinsics))]
#![cfg_attr(target_arch = "bpf", expect(internal_features, reason = "see `atomic`"))]
#![cfg_attr(
    target_arch = "bpf",
    expect(
        clippy::needless_borrows_for_generic_args,
        reason = "a key by value is copied to a stack of 512 bytes"
    )
)]

#[cfg(target_arch = "bpf")]
mod atomic;
#[cfg(target_arch = "bpf")]
mod fail;
#[cfg(target_arch = "bpf")]
mod hooks;
#[cfg(target_arch = "bpf")]
mod maps;
#[cfg(target_arch = "bpf")]
mod packet;
#[cfg(target_arch = "bpf")]
mod socket;
#[cfg(target_arch = "bpf")]
mod stages;
#[cfg(target_arch = "bpf")]
mod words;

/// The helpers that check packets, locks and loops ask for a GPL-compatible licence.
#[cfg(target_arch = "bpf")]
#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

#[cfg(target_arch = "bpf")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

/// On other targets there is nothing to run; the workspace still checks and lints the package.
#[cfg(not(target_arch = "bpf"))]
fn main() {}
