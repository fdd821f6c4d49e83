//! A testbed that runs a server, a device with registers and a client in one thread.

use super::*;

/// A server, a client, and a device with registers.
pub struct Testbed {
    pub server: Server,
    pub client: Client,
    pub now: Instant,
    pub config: Vec<u8>,
    pub bar: Vec<u8>,
    /// The actions of the server since they were last taken.
    pub actions: Vec<Action>,
    /// Whether [`pump`](Self::pump) answers the actions.
    pub answer: bool,
    pub folder: Folder,
}

impl Testbed {
    /// A testbed whose client has not yet sent anything.
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

    /// A testbed whose client has negotiated a version, as QEMU does.
    pub fn with(info: EndpointInfo) -> Self {
        let mut testbed = Self::silent(info);
        testbed.greet(&bench_capabilities());
        testbed.actions.clear();
        testbed
    }

    pub fn new() -> Self {
        Self::with(plain_endpoint())
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
            while let Some(action) = self.server.poll(self.now, true) {
                self.actions.push(action.clone());
                if self.answer {
                    self.carry_out(action);
                }
            }
        }
    }

    /// Runs the server until the client has something to read. Waits up to 5 s for the server's
    /// descriptor, because a worker may have to act first.
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

    /// Sends bytes as the client and runs the server.
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

    /// Executes a command. Returns the errno of an error reply; `None` if the command succeeded.
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

    /// Sends a read of `count` bytes of BAR 0. From now on no actions are answered. Returns the
    /// tokens of the server's actions.
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

    /// Takes the actions, which must be accesses, and returns the offset and the length of each
    /// access in bytes.
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
