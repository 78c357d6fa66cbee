//! The one mixing function behind fingerprints. Not cryptographic; seeded at random by the agent so that
//! collisions cannot be aimed.

/// 2^64 divided by the golden ratio: odd, with well spread bits (Knuth, TAOCP vol. 3, 6.4).
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// Takes one more word into a hash.
#[inline(always)]
pub const fn mix(hash: u64, word: u64) -> u64 {
    let product = (hash ^ word).wrapping_mul(MULTIPLIER);
    product ^ (product >> 32)
}

/// The lowest `count` bytes of a word (0..=8).
#[inline(always)]
pub const fn low_bytes(word: u64, count: u32) -> u64 {
    if count >= 8 { word } else { word & ((1 << (count * 8)) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_bytes_cuts_at_every_length() {
        let word = 0x8877_6655_4433_2211;
        assert_eq!(low_bytes(word, 0), 0);
        assert_eq!(low_bytes(word, 1), 0x11);
        assert_eq!(low_bytes(word, 7), 0x0077_6655_4433_2211);
        assert_eq!(low_bytes(word, 8), word);
        assert_eq!(low_bytes(word, 99), word);
    }

    #[test]
    fn mix_tells_order() {
        assert_ne!(mix(mix(1, 2), 3), mix(mix(1, 3), 2));
    }
}
