//! A drive that two hosts reach: what lies in the receive buffers of a stopped device node.

use super::controllers::two;
use live::attached::Switch;
use live::links::Links;
use live::net::Address;
use live::{Clock, Poller, Waiting};
use load::initiator_host::{Hardware, InitiatorHost};
use nvme::initiator::{self, Io, Op};
use rustix::process::Signal;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;
use switch::tunnel::Settings;
use switch::upstream;
use wire::frame::Role;

const BYTES: usize = 4096;

/// A host with the built-in initiator, whose node never counts the link as lost.
fn host(address: &str) -> InitiatorHost<Switch> {
    let address = Address::from(address.parse::<SocketAddr>().unwrap());
    let loss_limit = wire::Duration::from_ms(60_000);
    let tunnel = Settings { loss_limit, ..Settings::new(Role::Host, 7) };
    let upstream = upstream::Settings { ports: 1, max_payload: 4096, p2p: false, tunnel };
    let switch = Switch::new(upstream, Links::new(&[address]));
    let driver = initiator::Settings { timeout: loss_limit, ..Default::default() };
    let poller = Poller::new(Waiting::Block).unwrap();
    let is_up = |switch: &mut Switch| Ok(switch.upstream().tunnel(0).is_up());
    InitiatorHost::start(Clock::start(), poller, Hardware::default(), driver, switch, is_up)
        .unwrap_or_else(|why| panic!("{why:?}"))
}

fn fill(host: &mut InitiatorHost<Switch>, buffer: u64, byte: u8) {
    host.memory.ram.borrow_mut().write(buffer, &[byte; BYTES]).unwrap();
}

fn io(op: Op, buffer: u64) -> Io {
    Io { op, nsid: 1, slba: 0, blocks: (BYTES / 512) as u32, buffer }
}

/// Submits a write of the first blocks, and lets it reach the device's receive buffer.
fn submit(host: &mut InitiatorHost<Switch>, buffer: u64) {
    let now = host.machine.clock().now();
    host.drives[0].driver.submit(now, 0, io(Op::Write, buffer)).unwrap();
    host.machine.pump(&mut host.memory).unwrap();
}

/// The first byte of the namespace.
fn first_byte(host: &mut InitiatorHost<Switch>, buffer: u64) -> u8 {
    host.carry_out(0, &[io(Op::Read, buffer)]).unwrap_or_else(|why| panic!("{why:?}"));
    let mut data = [0; BYTES];
    host.memory.ram.borrow_mut().read(buffer, &mut data).unwrap();
    assert!(data.iter().all(|byte| *byte == data[0]));
    data[0]
}

/// The device node is stopped for 10 s. Meanwhile one host writes and gives its link up; another one
/// writes the same blocks later. The node finds both in its receive buffers and serves the second one
/// first: the write of the host that gave up is not carried out any more.
#[test]
fn a_stopped_device_does_nothing_for_a_host_that_gave_up() {
    let (device, addresses) = two(&["--spin", "0"]);
    let [mut again, mut gone] = [&addresses[0], &addresses[1]].map(|address| host(address));
    let [kept, stale] = [&mut again, &mut gone].map(|host| host.buffer(BYTES).unwrap());
    // Both have a lease.
    assert_eq!((first_byte(&mut again, kept), first_byte(&mut gone, stale)), (0, 0));
    fill(&mut again, kept, 1);
    fill(&mut gone, stale, 2);
    device.signal(Signal::STOP);
    submit(&mut gone, stale);
    submit(&mut again, kept);
    thread::sleep(Duration::from_secs(10));
    device.signal(Signal::CONT);
    while again.reap(0).is_empty() {
        again.turn().unwrap();
    }
    let read = again.buffer(BYTES).unwrap();
    assert_eq!(first_byte(&mut again, read), 1);
    drop(gone);
    for _ in 0..20 {
        assert_eq!(first_byte(&mut again, read), 1, "the retry stays");
    }
}
