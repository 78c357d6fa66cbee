//! CPU time from the kernel's books, `/proc/stat`: what one CPU spent on programs, on the kernel for them and on
//! interrupts. Programs of ours run in the softirq and in the sender's own time, so all of it is in there, and
//! none of it shows in a process's own account alone.
//!
//! The books are kept in ticks of 10 ms; over a run of two seconds that is half a percent.

use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result};

/// Microseconds in a tick of `/proc/stat`. *Source*: USER_HZ is 100, include/asm-generic/param.h.
const TICK_US: u64 = 10_000;

/// What one CPU has done since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Books {
    /// Microseconds spent on anything.
    busy_us: u64,
    /// Microseconds that the hypervisor gave to others while this CPU had work.
    stolen_us: u64,
}

/// What one CPU did between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// Microseconds spent on anything.
    pub busy_us: u64,
    /// Microseconds that the hypervisor gave to others while this CPU had work.
    pub stolen_us: u64,
}

impl Books {
    /// Reads the books of one CPU.
    ///
    /// # Errors
    /// When `/proc/stat` cannot be read or has no line for it.
    pub fn read(cpu: u32) -> Result<Self> {
        let text = fs::read_to_string("/proc/stat").context("cannot read /proc/stat")?;
        parse(&text, cpu).with_context(|| format!("/proc/stat has no usable line for CPU {cpu}"))
    }

    /// What was spent since an earlier reading.
    pub fn since(self, earlier: Self) -> Spent {
        Spent {
            busy_us: self.busy_us.saturating_sub(earlier.busy_us),
            stolen_us: self.stolen_us.saturating_sub(earlier.stolen_us),
        }
    }
}

/// The share of one CPU that is in use over the given time, while this program does nothing.
///
/// # Errors
/// As [`Books::read`].
pub fn busy_share(cpu: u32, time: Duration) -> Result<f64> {
    let before = Books::read(cpu)?;
    thread::sleep(time);
    let spent = Books::read(cpu)?.since(before);
    Ok(spent.busy_us as f64 / time.as_micros() as f64)
}

/// *Source*: proc_stat(5): user nice system idle iowait irq softirq steal guest guest_nice; guests' time is part
/// of user's already.
fn parse(text: &str, cpu: u32) -> Option<Books> {
    let label = format!("cpu{cpu}");
    let line = text.lines().find(|line| line.split(' ').next() == Some(&label))?;
    let ticks: Vec<u64> = line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = ticks[..] else { return None };
    Some(Books { busy_us: (user + nice + system + irq + softirq) * TICK_US, stolen_us: steal * TICK_US })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str =
        "cpu  9 9 9 9 9 9 9 9 9 9\ncpu1 10 1 20 400 5 2 3 7 4 0\ncpu11 1 1 1 1 1 1 1 1 0 0\nintr 5\n";

    #[test]
    fn work_counts_and_waiting_does_not() {
        assert_eq!(parse(STAT, 1), Some(Books { busy_us: 360_000, stolen_us: 70_000 }));
    }

    #[test]
    fn a_cpu_is_found_by_its_whole_number() {
        assert_eq!(parse(STAT, 11), Some(Books { busy_us: 50_000, stolen_us: 10_000 }));
        assert_eq!(parse(STAT, 2), None);
        assert_eq!(parse("cpu2 1 2", 2), None);
    }

    #[test]
    fn a_difference_is_never_negative() {
        let (early, late) = (Books { busy_us: 5, stolen_us: 1 }, Books { busy_us: 9, stolen_us: 1 });
        assert_eq!(late.since(early), Spent { busy_us: 4, stolen_us: 0 });
        assert_eq!(early.since(late), Spent { busy_us: 0, stolen_us: 0 });
    }
}
