//! A test client, and a testbed that runs a server and a device of registers in the same thread.

use super::*;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A reply.
#[derive(Debug)]
pub struct Reply {
    pub header: Header,
    pub payload: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

/// A blocking client of the protocol.
pub struct Client(pub UnixStream);

/// The bytes of a command.
pub fn message(id: u16, command: u16, payload: &[u8], no_reply: bool) -> Vec<u8> {
    let header =
        Header { command, no_reply, ..Header::command(id, Command::Version, payload.len()) };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

impl Client {
    pub fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        Self(stream)
    }

    /// A client that negotiates the version as QEMU does, in a message with this ID.
    pub fn greeted(path: &Path, id: u16) -> Self {
        let client = Self::connect(path);
        let greeting = greeting(bench_capabilities());
        client.send(&message(id, Command::Version.number(), &greeting, false), &[]);
        client
    }

    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() {
            assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
        }
        let slices = [IoSlice::new(bytes)];
        let sent =
            rustix::net::sendmsg(&self.0, &slices, &mut control, SendFlags::NOSIGNAL).unwrap();
        assert_eq!(sent, bytes.len());
    }

    /// Reads one message: the header with its descriptors, then the payload
    /// with a single read, as SPDK does.
    pub fn receive(&self) -> Reply {
        let mut head = [0; Header::SIZE];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut slices = [IoSliceMut::new(&mut head)];
        let got =
            rustix::net::recvmsg(&self.0, &mut slices, &mut control, RecvFlags::empty()).unwrap();
        assert_eq!(got.bytes, Header::SIZE);
        let mut fds = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(some) = message {
                fds.extend(some);
            }
        }
        let header = Header::decode(&head).unwrap();
        let mut payload = vec![0; header.payload()];
        if !payload.is_empty() {
            assert_eq!((&self.0).read(&mut payload).unwrap(), payload.len());
        }
        Reply { header, payload, fds }
    }

    /// Whether nothing was received.
    pub fn is_quiet(&self) -> bool {
        let quiet =
            rustix::net::recv(&self.0, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        quiet.err() == Some(rustix::io::Errno::AGAIN)
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        matches!((&self.0).read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

/// A server, a client, and a device of registers.
pub struct Testbed {
    pub server: Server,
    pub client: Client,
    pub now: Instant,
    pub config: Vec<u8>,
    pub bar: Vec<u8>,
    /// All actions of the server.
    pub actions: Vec<Action>,
    /// Whether `pump` answers.
    pub answer: bool,
    pub folder: Folder,
}

impl Testbed {
    /// A client that has not yet sent anything.
    pub fn silent(info: EndpointInfo) -> Self {
        let folder = Folder::new();
        let config = info.config.to_vec();
        let server = Server::bind(&folder, 0, info).unwrap();
        let client = Client::connect(server.path());
        let mut testbed = Self {
            server,
            client,
            now: Instant::ZERO,
            config,
            bar: (0..0x4000).map(|i| i as u8).collect(),
            actions: Vec::new(),
            answer: true,
            folder,
        };
        testbed.pump();
        testbed
    }

    /// A client that has negotiated a version, as QEMU does.
    pub fn with(info: EndpointInfo) -> Self {
        let mut testbed = Self::silent(info);
        testbed.greet(&bench_capabilities());
        testbed.actions.clear();
        testbed
    }

    pub fn new() -> Self {
        Self::with(testing::plain_endpoint())
    }

    pub fn greet(&mut self, capabilities: &Option<Capabilities>) -> Version {
        let reply = self.exchange(Command::Version, &greeting(capabilities.clone()), &[]);
        assert_eq!(reply.header.error, None);
        Version::decode(&reply.payload).unwrap()
    }

    /// Runs the server until it is idle.
    pub fn pump(&mut self) {
        for _ in 0..200 {
            self.server.service(self.now);
            while let Some(action) = self.server.poll(self.now) {
                self.actions.push(action.clone());
                if self.answer {
                    self.carry_out(action);
                }
            }
        }
    }

    /// Runs the server until the client has something to read, which may need its worker.
    pub fn pump_until_answered(&mut self) {
        while self.client.is_quiet() {
            assert!(is_readable(&self.server, 5), "no answer");
            self.pump();
        }
    }

    pub fn carry_out(&mut self, action: Action) {
        let (now, server) = (self.now, &mut self.server);
        match action {
            Action::ConfigRead { token, offset, size } => {
                let at = usize::from(offset);
                server.reply(now, token, Ok(&self.config[at..at + usize::from(size)]));
            }
            Action::BarRead { token, offset, length, .. } => {
                let at = offset as usize;
                server.reply(now, token, Ok(&self.bar[at..at + length]));
            }
            Action::BarWrite { offset, data, .. } => {
                let at = offset as usize;
                self.bar[at..at + data.len()].copy_from_slice(&data);
            }
            Action::ConfigWrite { token, .. }
            | Action::Reset { token }
            | Action::ClientGone { token } => server.reply(now, token, Ok(&[])),
            Action::MsixEnable(_) | Action::DmaDone { .. } => {}
        }
    }

    /// Sends bytes of the client and runs the server.
    pub fn send(&mut self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        self.client.send(bytes, fds);
        self.pump();
    }

    pub fn post(&mut self, command: Command, payload: &[u8], fds: &[BorrowedFd<'_>]) {
        self.send(&message(7, command.number(), payload, false), fds);
    }

    pub fn exchange(&mut self, command: Command, payload: &[u8], fds: &[BorrowedFd<'_>]) -> Reply {
        self.post(command, payload, fds);
        self.pump_until_answered();
        let reply = self.client.receive();
        assert_eq!((reply.header.id, reply.header.command), (7, command.number()));
        reply
    }

    /// The errno of a command that is refused; `None` if it is not.
    pub fn errno(
        &mut self,
        command: Command,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Option<u32> {
        let reply = self.exchange(command, payload, fds);
        assert!(reply.header.error.is_none() || reply.payload.is_empty());
        reply.header.error
    }

    pub fn read(&mut self, region: u32, offset: u64, count: u32) -> Vec<u8> {
        let reply = self.exchange(Command::RegionRead, &access(region, offset, count, &[]), &[]);
        assert_eq!(reply.header.error, None);
        let head = RegionAccess::decode(&reply.payload).unwrap();
        assert_eq!(head, RegionAccess { offset, region, count });
        reply.payload[RegionAccess::LENGTH..].to_vec()
    }

    /// Reads `count` bytes of BAR 0, which stay unanswered from now on; returns the tokens of
    /// the server's actions.
    pub fn ask(&mut self, offset: u64, count: u32) -> Vec<Token> {
        self.answer = false;
        self.post(Command::RegionRead, &access(0, offset, count, &[]), &[]);
        let token = |action| match action {
            Action::BarRead { token, .. } => token,
            other => panic!("{other:?}"),
        };
        self.take_actions().into_iter().map(token).collect()
    }

    pub fn write(&mut self, region: u32, offset: u64, data: &[u8]) {
        let payload = access(region, offset, data.len() as u32, data);
        let reply = self.exchange(Command::RegionWrite, &payload, &[]);
        assert_eq!(reply.header.error, None);
        assert_eq!(reply.payload, payload[..RegionAccess::LENGTH]);
    }

    pub fn map(&mut self, map: DmaMap, fd: Option<&OwnedFd>) -> Option<u32> {
        let payload = encoded(|out| map.encode(out));
        let fds: Vec<_> = fd.iter().map(|fd| fd.as_fd()).collect();
        self.errno(Command::DmaMap, &payload, &fds)
    }

    pub fn set_irqs(
        &mut self,
        (data, action): (IrqData, IrqAction),
        (index, start, count): (u32, u32, u32),
        fds: &[BorrowedFd<'_>],
    ) -> Option<u32> {
        let payload = encoded(|out| IrqSet { data, action, index, start, count }.encode(out));
        self.errno(Command::DeviceSetIrqs, &payload, fds)
    }

    /// Offset and length of the accesses among the actions so far; clears all actions.
    pub fn take_accesses(&mut self) -> Vec<(u64, usize)> {
        let access = |action| match action {
            Action::ConfigRead { offset, size, .. } => (offset.into(), size.into()),
            Action::BarRead { offset, length, .. } => (offset, length),
            Action::BarWrite { offset, data, .. } => (offset, data.len()),
            other => panic!("{other:?}"),
        };
        self.take_actions().into_iter().map(access).collect()
    }

    /// Takes the actions so far.
    pub fn take_actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }
}

/// What QEMU 11.1 sends.
pub fn bench_capabilities() -> Option<Capabilities> {
    Some(Capabilities {
        max_msg_fds: Some(16),
        max_data_xfer_size: Some(1 << 20),
        max_dma_maps: Some(65535),
        pgsizes: Some(4096),
        write_multiple: Some(true),
        twin_socket: None,
        migration: true,
    })
}

/// The payload of a VERSION message.
fn greeting(capabilities: Option<Capabilities>) -> Vec<u8> {
    encoded(|out| Version { major: 0, minor: 1, capabilities }.encode(out))
}

/// The bytes of a payload.
pub fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

pub fn access(region: u32, offset: u64, count: u32, data: &[u8]) -> Vec<u8> {
    let mut payload = encoded(|out| RegionAccess { offset, region, count }.encode(out));
    payload.extend_from_slice(data);
    payload
}

/// Whether `fd` becomes readable within `seconds`.
pub fn is_readable(fd: impl AsFd, seconds: i64) -> bool {
    let within = Timespec { tv_sec: seconds, tv_nsec: 0 };
    rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&within)) == Ok(1)
}

/// The signals of an eventfd since the last call.
pub fn rung(fd: &OwnedFd) -> u64 {
    let mut count = [0; 8];
    match rustix::io::read(fd, &mut count) {
        Ok(8) => u64::from_ne_bytes(count),
        _ => 0,
    }
}

pub fn eventfd() -> OwnedFd {
    use rustix::event::EventfdFlags;
    rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap()
}
