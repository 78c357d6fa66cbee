//! Turning round the packets of a denied request.
//!
//! ```text
//!   client                      this host                         server
//!     │ data of the request ──▶ first packet: RST at `base` ────▶ │ gone
//!     │ ◀── ACK ──────────────  request not complete              │
//!     │ data, the last ───────▶                                   │
//!     │ ◀── answer, FIN ──────  complete                          │
//!     │ ACK, FIN ─────────────▶                                   │
//!     │ ◀── ACK ──────────────                                    │
//! ```
//! Each packet is answered on its own: what is lost on the way back is asked for again by the client's own
//! retransmission, as from any server.
use super::{Segment, before, flag};
use crate::abi::Flow;

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// It goes on unaltered.
    Pass,
    /// It is taken off the wire.
    Swallow,
    /// It is rewritten into this reply and turned round.
    Reply(Reply),
}

/// A segment to be sent in place of the one that came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reply {
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number.
    pub ack: u32,
    /// Set of [`flag`]s.
    pub flags: u8,
    /// Whether the answer's bytes are its data.
    pub answer: bool,
}

/// What becomes of a packet of the client, and what the server gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reflection {
    /// A RST that the server gets first.
    pub reset: Option<Reply>,
    /// What becomes of the packet itself.
    pub action: Action,
}

impl Reflection {
    const fn only(action: Action) -> Self {
        Self { reset: None, action }
    }
}

/// A packet from the client of a denied request.
#[inline(always)]
pub fn from_client(flow: &mut Flow, segment: &Segment) -> Reflection {
    if segment.has(flag::RST) {
        // The one at `base` is ours on its way to the server. The client's own is not needed: the server has
        // had that one.
        let ours = segment.seq == flow.base;
        return Reflection::only(if ours { Action::Pass } else { Action::Swallow });
    }
    if !before(flow.base, segment.end()) {
        // Belongs to what was passed before.
        return Reflection::only(Action::Pass);
    }
    if flow.sent == 0 || before(flow.sent, segment.end()) {
        flow.sent = segment.end();
    }
    let mut reset = None;
    if flow.server_reset == 0 {
        flow.server_reset = 1;
        let flags = flag::RST | flag::ACK;
        reset = Some(Reply { seq: flow.base, ack: flow.answer_at, flags, answer: false });
    }
    if segment.has(flag::FIN) && flow.complete == 0 {
        flow.given_up = 1;
    }
    Reflection { reset, action: reply(flow, segment) }
}

#[inline(always)]
fn reply(flow: &Flow, segment: &Segment) -> Action {
    let mut reply = Reply { seq: flow.answer_at, ack: flow.sent, flags: flag::ACK, answer: false };
    if flow.given_up == 0 && flow.complete == 0 {
        return Action::Reply(reply);
    }
    // Our side of the connection: the answer (none for a client that gave up), then FIN.
    let closed_at = if flow.given_up != 0 { 1 } else { flow.answer_len + 1 };
    if segment.ack == flow.answer_at.wrapping_add(closed_at) {
        // The client has it all; its own FIN (or stray data) is acknowledged, nothing else needs an answer.
        reply.seq = segment.ack;
        return if segment.is_pure_ack() { Action::Swallow } else { Action::Reply(reply) };
    }
    if flow.given_up != 0 {
        reply.flags = flag::ACK | flag::FIN;
        return Action::Reply(reply);
    }
    if segment.is_pure_ack() {
        return Action::Swallow;
    }
    reply.flags = flag::ACK | flag::PSH | flag::FIN;
    reply.answer = true;
    Action::Reply(reply)
}

/// A packet towards the client of a denied request. What the server still says is not for the client; a reset
/// tells the server again, should the first have been lost.
#[inline(always)]
pub const fn from_server(flow: &Flow, segment: &Segment) -> Action {
    if segment.has(flag::RST) {
        return Action::Swallow;
    }
    // Only our own replies acknowledge anything of the denied request.
    if before(flow.base, segment.ack) {
        return Action::Pass;
    }
    Action::Reply(Reply { seq: segment.ack, ack: segment.end(), flags: flag::RST | flag::ACK, answer: false })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BASE: u32 = u32::MAX - 20;
    const ANSWER_AT: u32 = 5_000;
    const ANSWER_LEN: u32 = 120;

    fn denied(complete: bool) -> Flow {
        Flow {
            base: BASE,
            answer_at: ANSWER_AT,
            answer_len: ANSWER_LEN,
            complete: complete.into(),
            ..Flow::default()
        }
    }

    fn data(at: u32, len: u32) -> Segment {
        Segment { seq: BASE.wrapping_add(at), ack: ANSWER_AT, len, flags: flag::ACK | flag::PSH }
    }

    const ANSWER: u8 = flag::ACK | flag::PSH | flag::FIN;

    #[test]
    fn a_request_in_one_packet_is_reset_and_answered() {
        let mut flow = denied(true);
        let reflection = from_client(&mut flow, &data(0, 50));
        let reset = reflection.reset.expect("the server's end");
        assert_eq!((reset.seq, reset.ack, reset.flags), (BASE, ANSWER_AT, flag::RST | flag::ACK));
        let ack = BASE.wrapping_add(50);
        let reply = Reply { seq: ANSWER_AT, ack, flags: ANSWER, answer: true };
        assert_eq!(reflection.action, Action::Reply(reply));
        let again = from_client(&mut flow, &data(0, 50));
        assert_eq!(
            again,
            Reflection { reset: None, action: Action::Reply(reply) },
            "the same answer to a repetition"
        );
    }

    #[test]
    fn our_own_reset_passes_and_the_clients_does_not() {
        let mut flow = denied(true);
        let reset = |at| Segment { seq: BASE.wrapping_add(at), ack: 0, len: 0, flags: flag::RST };
        assert_eq!(from_client(&mut flow, &reset(0)).action, Action::Pass);
        assert_eq!(from_client(&mut flow, &reset(50)).action, Action::Swallow);
    }

    #[test]
    fn earlier_data_passes() {
        let mut flow = denied(true);
        let old = Segment { seq: BASE.wrapping_sub(40), ack: ANSWER_AT, len: 40, flags: flag::ACK };
        assert_eq!(from_client(&mut flow, &old).action, Action::Pass);
        assert_eq!(flow.server_reset, 0, "and does not end the server's connection");
    }

    #[test]
    fn an_upload_is_acknowledged_until_it_is_complete() {
        let mut flow = denied(false);
        for (at, len) in [(0, 1000), (2000, 1000), (1000, 1000)] {
            let Action::Reply(reply) = from_client(&mut flow, &data(at, len)).action else { panic!() };
            assert_eq!((reply.flags, reply.answer), (flag::ACK, false));
        }
        assert_eq!(flow.sent, BASE.wrapping_add(3000), "the highest byte, whatever the order");
        flow.complete = 1;
        let Action::Reply(reply) = from_client(&mut flow, &data(3000, 10)).action else { panic!() };
        assert_eq!((reply.flags, reply.answer, reply.ack), (ANSWER, true, BASE.wrapping_add(3010)));
    }

    #[test]
    fn the_clients_close_is_acknowledged() {
        let mut flow = denied(true);
        from_client(&mut flow, &data(0, 50));
        let all = ANSWER_AT + ANSWER_LEN + 1;
        let ack = Segment { seq: BASE.wrapping_add(50), ack: all, len: 0, flags: flag::ACK };
        assert_eq!(from_client(&mut flow, &ack).action, Action::Swallow);
        let fin = Segment { flags: flag::ACK | flag::FIN, ..ack };
        let reply = Reply { seq: all, ack: BASE.wrapping_add(51), flags: flag::ACK, answer: false };
        assert_eq!(from_client(&mut flow, &fin).action, Action::Reply(reply));
    }

    #[test]
    fn a_client_that_closes_in_mid_request_is_let_go() {
        let mut flow = denied(false);
        from_client(&mut flow, &data(0, 50));
        let fin =
            Segment { seq: BASE.wrapping_add(50), ack: ANSWER_AT, len: 0, flags: flag::ACK | flag::FIN };
        let ack = BASE.wrapping_add(51);
        let reply = Reply { seq: ANSWER_AT, ack, flags: flag::ACK | flag::FIN, answer: false };
        assert_eq!(from_client(&mut flow, &fin).action, Action::Reply(reply));
        let last = Segment { seq: ack, ack: ANSWER_AT + 1, len: 0, flags: flag::ACK };
        assert_eq!(from_client(&mut flow, &last).action, Action::Swallow);
    }

    #[test]
    fn the_server_is_told_again_and_our_replies_pass() {
        let flow = denied(true);
        let late = Segment { seq: ANSWER_AT, ack: BASE, len: 7, flags: flag::ACK };
        let reset = Reply { seq: BASE, ack: ANSWER_AT + 7, flags: flag::RST | flag::ACK, answer: false };
        assert_eq!(from_server(&flow, &late), Action::Reply(reset));
        let ours = Segment { seq: ANSWER_AT, ack: BASE.wrapping_add(50), len: ANSWER_LEN, flags: ANSWER };
        assert_eq!(from_server(&flow, &ours), Action::Pass);
        let reset = Segment { flags: flag::RST, ..late };
        assert_eq!(from_server(&flow, &reset), Action::Swallow, "no reset answers a reset");
    }

    proptest! {
        /// Whatever the order, loss and repetition: nothing of a denied request goes on to the server, and
        /// every packet with data gets a reply.
        #[test]
        fn nothing_of_a_denied_request_passes(
            packets in proptest::collection::vec((0_u32..3_000, 1_u32..1_500, any::<bool>(), any::<bool>()), 1..60),
        ) {
            let mut flow = denied(false);
            let mut resets = 0;
            for (at, len, fin, complete) in packets {
                flow.complete |= u32::from(complete);
                let mut segment = data(at, len);
                segment.flags |= u8::from(fin) * flag::FIN;
                let reflection = from_client(&mut flow, &segment);
                resets += u32::from(reflection.reset.is_some());
                prop_assert!(matches!(reflection.action, Action::Reply(_)));
            }
            prop_assert_eq!(resets, 1);
        }
    }
}
