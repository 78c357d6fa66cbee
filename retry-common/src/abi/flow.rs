//! A denied connection as the tc programs see it.

/// Addresses and ports of a connection as on the wire of this host (after NAT), client first.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowKey {
    /// Client, network byte order; an IPv4 address in the first word.
    pub client: [u32; 4],
    /// Server, likewise.
    pub server: [u32; 4],
    /// Client's port, network byte order.
    pub client_port: u16,
    /// Server's port, network byte order.
    pub server_port: u16,
    /// 4 or 6.
    pub version: u32,
}
const _: () = assert!(size_of::<FlowKey>() == 40);

impl FlowKey {
    /// The same flow seen from the other end.
    #[inline(always)]
    pub fn reversed(&self) -> Self {
        Self {
            client: self.server,
            server: self.client,
            client_port: self.server_port,
            server_port: self.client_port,
            version: self.version,
        }
    }
}

/// Where in the streams of both sides a denial stands.
///
/// The cgroup program writes the first five fields, the tc programs the others. All numbers are TCP
/// sequence numbers in host byte order.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flow {
    /// First byte of the denied request in the client's stream: what the server expects next.
    pub base: u32,
    /// First byte of the answer in the server's stream: what the client expects next.
    pub answer_at: u32,
    /// Policy whose answer is given.
    pub policy: u32,
    /// Length of that answer.
    pub answer_len: u32,
    /// 1 once the whole request (or a head that says Expect) was sent.
    pub complete: u32,
    /// Highest byte the client has sent, plus one; 0 before the first packet.
    pub sent: u32,
    /// 1 once the server's connection was reset.
    pub server_reset: u32,
    /// 1 once the client closed before its request was complete.
    pub given_up: u32,
}
const _: () = assert!(size_of::<Flow>() == 32);
