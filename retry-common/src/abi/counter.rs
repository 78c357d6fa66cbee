//! The one list of what the kernel counts: per edge ([`EdgeCounter`]) and per node ([`Fail`]).

/// Most statuses that may be configured as failures.
pub const FAILURE_STATUSES: usize = 16;

/// Declares an enum of counters with their names and explanations, so that nothing is listed twice.
macro_rules! counters {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $label:literal, $help:literal;)* }) => {
        $(#[$meta])*
        #[repr(u32)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $(#[doc = $help] $variant,)* }

        impl $name {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];
            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// Name as used in labels and in JSON.
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)* }
            }

            /// One sentence for people.
            pub const fn help(self) -> &'static str {
                match self { $(Self::$variant => $help,)* }
            }
        }
    };
}

counters! {
    /// What is counted per edge. `Http…` are requests; `Tcp…` are connections that never carried a request
    /// we can read, refused ones included.
    EdgeCounter {
        Established = "established", "Connections that were established.";
        Refused = "refused", "Connections refused by the destination.";
        ResetEarly = "reset", "Connections reset before anything was received on them.";
        TimedOut = "timed_out", "Connections that were given up before they were established.";
        ConnectDenied = "denied", "Connections refused by the budget.";
        HttpAttempts = "http_attempts", "Requests sent or denied.";
        HttpRepetition = "http_repetition", "Requests recognised as retries by repetition.";
        HttpConnection = "http_connection", "Requests recognised as retries by a failed connect before them.";
        HttpDenied = "http_denied", "Requests answered in the kernel.";
        HttpWouldDeny = "http_would_deny", "Requests that enforce mode would have answered.";
        HttpReset = "http_reset", "Requests whose connection was reset before an answer.";
        HttpEof = "http_eof", "Requests whose connection was closed by the server before an answer.";
        HttpAbandoned = "http_abandoned", "Requests given up by the client while waiting.";
        TcpAttempts = "tcp_attempts", "Connections, failed or in a protocol that is not read.";
        TcpConnection = "tcp_connection", "Connections recognised as retries by a failed connect before them.";
        TcpDenied = "tcp_denied", "Connections refused in the kernel.";
        TcpWouldDeny = "tcp_would_deny", "Connections that enforce mode would have refused.";
        TcpEof = "tcp_eof", "Connections closed by the server before it sent anything.";
        Uncovered = "uncovered", "Excess retries passed because their device has no reflector.";
        Spared = "spared", "Excess retries passed because a denial would not have been clean.";
        Opaque = "opaque", "Connections that carry something else than HTTP/1.";
        Pipelined = "pipelined", "Requests sent before the answer to the one before them.";
    }
}

counters! {
    /// Why the kernel side passed something it would rather have handled, and what it did on the wire.
    Fail {
        EdgesFull = "edges_full", "New edges counted on the overflow edge because the table was full.";
        StorageFailed = "storage_failed", "Connections not followed because no socket storage was to be had.";
        MapUpdate = "map_update", "Map updates that the kernel refused.";
        Headers = "packet_headers", "Packets with IP options, fragments or extension headers, left alone.";
        FastOpen = "fast_open", "Connections that carry data in the SYN, left alone.";
        Gap = "gap", "Connections given up because data went out unseen.";
        ReadFailed = "read_failed", "Packets whose bytes could not be read.";
        TooManySteps = "too_many_steps", "Packets that needed more steps than a program may take.";
        NotHttp1 = "not_http1", "Connections that carry something else than HTTP/1.";
        Malformed = "malformed", "Requests or answers that break the rules of HTTP/1.";
        Upgraded = "upgraded", "Connections that switched to another protocol.";
        LostSync = "lost_sync", "Answers whose place in the stream was lost (loss, reordering).";
        Contended = "contended", "Credits lost to contention; the attempt counted as an original.";
        StaleHeartbeat = "stale_heartbeat", "Denials not given because the agent was silent.";
        EventsLost = "events_lost", "Events that found the ring full.";
        ReflectFailed = "reflect_failed", "Packets of denied requests that could not be rewritten.";
        ResetFailed = "reset_failed", "Resets to the server that could not be sent.";
        Answered = "answers_sent", "Answers put on the wire, repetitions included.";
        Swallowed = "packets_swallowed", "Packets of denied requests kept from the server.";
        Shielded = "packets_shielded", "Packets from servers of denied connections answered with a reset.";
    }
}
