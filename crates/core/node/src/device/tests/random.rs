//! The node does nothing that is not allowed, in any situation.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Step {
    Connect {
        role: Role,
        group: u16,
        signals_close: bool,
    },
    Raw(Vec<u8>),
    /// The bytes that a peer sends next.
    Push(usize, usize),
    Echo(usize),
    Move(usize, u16),
    Goodbye(usize),
    Silence(usize),
    Spoil(usize, Vec<u8>),
    Room(usize, usize),
    Gone(usize),
    Send(usize),
    Wait(u64),
    /// The node is not called for this long.
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let role = prop_oneof![4 => Just(Role::Host), 2 => Just(Role::Probe), 1 => Just(Role::Device)];
    let bytes = prop::collection::vec(any::<u8>(), 0..80);
    let who = 0usize..64;
    prop_oneof![
        6 => (role, 0u16..3, any::<bool>())
            .prop_map(|(role, group, signals_close)| Step::Connect { role, group, signals_close }),
        2 => bytes.clone().prop_map(Step::Raw),
        4 => (who.clone(), 1usize..500).prop_map(|(who, length)| Step::Push(who, length)),
        1 => who.clone().prop_map(Step::Echo),
        3 => (who.clone(), 0u16..3).prop_map(|(who, group)| Step::Move(who, group)),
        1 => who.clone().prop_map(Step::Goodbye),
        1 => who.clone().prop_map(Step::Silence),
        1 => (who.clone(), bytes).prop_map(|(who, bytes)| Step::Spoil(who, bytes)),
        4 => (who.clone(), prop_oneof![Just(0), 0usize..200, Just(1 << 20)])
            .prop_map(|(who, room)| Step::Room(who, room)),
        2 => who.prop_map(Step::Gone),
        4 => (1usize..500).prop_map(Step::Send),
        4 => prop_oneof![0u64..300, 0u64..3_000].prop_map(Step::Wait),
        1 => (0u64..3_000).prop_map(Step::Sleep),
    ]
}

impl Shell {
    fn step(&mut self, step: Step) {
        let paths = self.peers.len().max(1);
        let path = |who: usize| PathId((who % paths) as u64);
        let mut peer = |who: usize, act: &mut dyn FnMut(&mut Peer)| {
            self.peers.get_mut(&path(who)).map(act);
        };
        match step {
            Step::Connect { role, group, signals_close } => {
                self.connect(Settings { group, ..Settings::new(role, 5) }, signals_close);
            }
            Step::Raw(bytes) => {
                let path = self.connect(Settings::new(Role::Device, 4), true);
                self.node.handle(self.now, path, path::Input::Received(bytes.into()));
            }
            Step::Push(who, length) => peer(who, &mut |peer| {
                if peer.tunnel.ready().has(write(0, length).class()) {
                    peer.tunnel.push(write(1, 4 * length));
                }
            }),
            Step::Echo(who) => peer(who, &mut |peer| peer.tunnel.echo(9)),
            Step::Move(who, group) => peer(who, &mut |peer| peer.tunnel.move_to(group)),
            Step::Goodbye(who) => peer(who, &mut |peer| peer.tunnel.goodbye()),
            Step::Silence(who) => peer(who, &mut |peer| peer.alive = false),
            Step::Room(who, room) => peer(who, &mut |peer| peer.room = room),
            Step::Spoil(who, bytes) if self.peers.contains_key(&path(who)) => {
                self.node.handle(self.now, path(who), path::Input::Received(bytes.into()));
            }
            Step::Gone(who) if self.peers.contains_key(&path(who)) => self.gone(path(who)),
            Step::Spoil(..) | Step::Gone(_) => {}
            Step::Send(length) => self.node.function_mut().sends.push_back(write(2, 4 * length)),
            Step::Wait(ms) => self.wait(Duration::from_ms(ms)),
            Step::Sleep(ms) => self.now += Duration::from_ms(ms),
        }
    }

    fn open(&self) -> usize {
        self.peers.values().filter(|peer| peer.closed.is_none()).count()
    }
}

proptest! {
    #[test]
    fn device_node_keeps_its_contract_for_random_steps(
        steps in prop::collection::vec((step(), prop::bool::weighted(0.7)), 1..60),
        leaves: bool,
    ) {
        let mut shell = Shell::new(|node| node.in_group(Some(1)));
        for (step, settles) in steps {
            shell.step(step);
            if !settles {
                shell.bring();
                continue;
            }
            // `settle` checks what is transmitted, closed and reported.
            shell.settle();
            prop_assert!(shell.open() <= 17, "a host and 16 pending");
            let gone = shell.peers.values().filter(|peer| peer.gone && peer.closed.is_none());
            prop_assert_eq!(gone.count(), 0, "each path that is gone is closed");
        }
        if leaves {
            shell.node.shut_down();
            shell.settle();
            prop_assert_eq!(shell.node.link(), None);
            return Ok(());
        }
        // At last every peer leaves, and the node must drop all state of them.
        let open: Vec<PathId> = shell.peers.keys().copied().collect();
        open.into_iter().for_each(|path| shell.gone(path));
        shell.settle();
        prop_assert_eq!((shell.open(), shell.node.link(), shell.timer), (0, None, None));
    }
}
