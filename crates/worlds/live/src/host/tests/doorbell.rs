//! Doorbells over real sockets: a doorbell is sent in the turn in which the VMM's message is
//! read, and does not wait for an earlier register read.

use crate::attached::{Attached, Switch};
use crate::host::event_limits::HostEventLimiter;
use crate::host::{EndpointChange, HostEvent, HostNode, MachineSettings};
use crate::links::Links;
use crate::net::{Address, CarrierListener, RawSettings};
use crate::poller::{Poller, Waiting};
use crate::{Clock, Control, DeviceNode};
use pcie::dma_test::{DmaTest, Settings, register};
use pcie::{Function, Input, Output, Ports, Ready};
use rustix::net::{RecvFlags, recv};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use switch::tunnel;
use testkit::Folder;
use testkit::vfio_user::{Client, access, message};
use wire::Instant;
use wire::frame::Role;
use wire::tlp::{Packet, Tlp};
use wire::vfio_user::{Command, RegionAccess};

/// Answers a read of `LENGTH` only when something has been written.
struct Stuck {
    function: DmaTest,
    held: Option<Tlp>,
}

fn reads_length(tlp: &Tlp) -> bool {
    matches!(tlp.packet, Packet::MemoryRead(read) if read.address & 0xfff == register::LENGTH)
}

impl Function for Stuck {
    fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Tlp(tlp) if reads_length(&tlp) => self.held = Some(tlp),
            Input::Tlp(tlp) if matches!(tlp.packet, Packet::MemoryWrite(_)) => {
                self.function.handle(now, Input::Tlp(tlp));
                let held = self.held.take();
                held.into_iter().for_each(|tlp| self.function.handle(now, Input::Tlp(tlp)));
            }
            input => self.function.handle(now, input),
        }
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.function.poll(now, ready)
    }

    fn ready(&self) -> Ready {
        self.function.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

impl Attached for Stuck {}

/// A node in a thread, until its waker is dropped.
fn thread(run: impl FnOnce(UnixStream) + Send + 'static) -> (UnixStream, JoinHandle<()>) {
    let (wake, waker) = UnixStream::pair().unwrap();
    (waker, std::thread::spawn(move || run(wake)))
}

/// Serves until the other end of `wake` closes.
fn control(wake: &UnixStream) -> impl FnMut() -> Control {
    let peek = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    move || match recv(wake, &mut [0; 1][..], peek) {
        Ok(_) => Control::Stop,
        Err(_) => Control::Serve,
    }
}

fn device(announce: Sender<Address>, wake: UnixStream) {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = CarrierListener::bind(&loopback.into(), RawSettings::default()).unwrap();
    let settings = tunnel::Settings::new(Role::Device, 7);
    let stuck = Stuck { function: DmaTest::new(Settings::default()), held: None };
    let poller = Poller::new(Waiting::Block).unwrap();
    let mut node = DeviceNode::new(Clock::start(), poller, listener, settings, stuck).unwrap();
    announce.send(node.address().unwrap()).unwrap();
    node.run(wake.as_fd(), control(&wake), |_| {}).unwrap();
}

fn host(peer: Address, folder: &Path) -> HostNode {
    let settings = switch::upstream::Settings {
        ports: 1,
        max_payload: 4096,
        p2p: false,
        tunnel: tunnel::Settings::new(Role::Host, 8),
    };
    HostNode::start(
        Clock::start(),
        Poller::new(Waiting::Block).unwrap(),
        MachineSettings::default(),
        Switch::new(settings, Links::new(&[peer])),
        folder.into(),
        false,
        |switch, _| Ok(switch.upstream().tunnel(0).is_up()),
    )
    .unwrap()
}

/// The host node has enumerated below a link that came up.
fn is_back(event: &HostEvent) -> bool {
    matches!(event, HostEvent::Endpoint(0, EndpointChange::Reattached))
}

/// Sends a posted write of `LENGTH`.
fn ring(client: &Client) {
    let write = access(0, register::LENGTH, 4, &77_u32.to_le_bytes());
    client.send(&message(3, Command::RegionWrite.number(), &write, true), &[]);
}

#[test]
fn doorbell_is_sent_in_the_turn_that_reads_it() {
    let folder = Folder::new();
    let (announce, announced) = channel();
    let (waker, far) = thread(move |wake| device(announce, wake));
    let mut near = host(announced.recv().unwrap(), &folder);
    let mut lines = HostEventLimiter::new(HostEvent::Suppressed);
    let client = Client::greeted(&folder.join("0/cntrl"), 1);
    let mut back = false;
    while !back {
        near.turn(&mut lines, &mut |event| back |= is_back(&event)).unwrap();
    }
    // The answer of a far register shows that all before it is done.
    client.send(&message(2, Command::RegionRead.number(), &access(0, 0, 4, &[]), false), &[]);
    for _ in 0..2 {
        while client.is_quiet() {
            near.turn(&mut lines, &mut |_| {}).unwrap();
        }
        assert_eq!(client.receive().header.error, None);
    }
    let sent = |near: &HostNode| near.status().links[0].traffic["tlps_sent"];
    let before = sent(&near);
    ring(&client);
    near.turn(&mut lines, &mut |_| {}).unwrap();
    assert_ne!(sent(&near), before);
    drop(waker);
    far.join().unwrap();
}

#[test]
fn a_doorbell_does_not_wait_for_a_register_that_is_not_answered() {
    let folder = Folder::new();
    let (announce, announced) = channel();
    let (far_waker, far) = thread(move |wake| device(announce, wake));
    let peer = announced.recv().unwrap();
    let path = folder.to_owned();
    let (ready, offered) = channel();
    let (near_waker, near) = thread(move |wake| {
        let emit = |event| {
            if is_back(&event) {
                ready.send(()).unwrap();
            }
        };
        host(peer, &path).run(wake.as_fd(), control(&wake), emit).unwrap();
    });
    offered.recv().unwrap();
    let client = Client::greeted(&folder.join("0/cntrl"), 1);
    assert_eq!(client.receive().header.error, None);
    let read = access(0, register::LENGTH, 4, &[]);
    client.send(&message(2, Command::RegionRead.number(), &read, false), &[]);
    ring(&client);
    let reply = client.receive();
    assert_eq!(reply.header.id, 2);
    // All ones if the write was sent only after the read timed out.
    assert_eq!(reply.payload[RegionAccess::LENGTH..], 77_u32.to_le_bytes());
    for (waker, node) in [(near_waker, near), (far_waker, far)] {
        drop(waker);
        node.join().unwrap();
    }
}
