//! Loads of any alignment in one instruction each. Rust's own unaligned reads become a load per byte on BPF.
use core::arch::asm;

/// The eight bytes at `pointer + OFFSET`, the first one lowest.
///
/// # Safety
/// The bytes lie inside a map value or packet as far as the verifier can see.
#[inline(always)]
pub unsafe fn load64<const OFFSET: i16>(pointer: *const u8) -> u64 {
    let word;
    // SAFETY: by contract; the verifier checks it again.
    unsafe {
        asm!("{0} = *(u64 *)({1} + {2})", out(reg) word, in(reg) pointer, const OFFSET, options(pure, readonly, nostack));
    }
    word
}

/// The four bytes at `pointer + OFFSET`, as they lie in memory.
///
/// # Safety
/// As [`load64`].
#[inline(always)]
pub unsafe fn load32<const OFFSET: i16>(pointer: *const u8) -> u32 {
    let word: u64;
    // SAFETY: by contract; the verifier checks it again.
    unsafe {
        asm!("{0} = *(u32 *)({1} + {2})", out(reg) word, in(reg) pointer, const OFFSET, options(pure, readonly, nostack));
    }
    word as u32
}

/// The two bytes at `pointer + OFFSET`, as they lie in memory.
///
/// # Safety
/// As [`load64`].
#[inline(always)]
pub unsafe fn load16<const OFFSET: i16>(pointer: *const u8) -> u16 {
    let word: u64;
    // SAFETY: by contract; the verifier checks it again.
    unsafe {
        asm!("{0} = *(u16 *)({1} + {2})", out(reg) word, in(reg) pointer, const OFFSET, options(pure, readonly, nostack));
    }
    word as u16
}

/// `len` cut to 1..=256. Written so that also the verifier of kernel 6.1 sees both bounds, which the
/// optimiser would take out of any plain form.
#[inline(always)]
pub fn one_to_256(len: u32) -> u32 {
    let below = if len > 256 { 255 } else { len.wrapping_sub(1) };
    let mut bounded = u64::from(below);
    // SAFETY: arithmetic on one register.
    unsafe {
        asm!("{0} &= 255", "{0} += 1", inout(reg) bounded, options(pure, nomem, nostack));
    }
    bounded as u32
}
