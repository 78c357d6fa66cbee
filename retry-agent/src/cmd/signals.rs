//! Signals to the agent that are meant for its command.
use std::io;
use std::os::raw::c_int;
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::low_level::siginfo::Cause;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Signals that would end us, and the two that are for anything.
const ALL: [c_int; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Signals that the command does not get itself, from now on. What the kernel sends (Ctrl-C, Ctrl-\, a terminal
/// that hangs up) goes to the whole process group, and the command with it; what a process sends to us does not.
///
/// # Errors
/// When handlers cannot be set or no thread started.
pub(super) fn for_the_command() -> io::Result<UnboundedReceiver<c_int>> {
    let mut signals = SignalsInfo::<WithOrigin>::new(ALL)?;
    let (sender, receiver) = unbounded_channel();
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        let others = signals.forever().filter(|origin| !matches!(origin.cause, Cause::Kernel));
        for origin in others {
            // Nobody listens when the command has ended: nothing is left to hand on to.
            let _ = sender.send(origin.signal);
        }
    })?;
    Ok(receiver)
}
