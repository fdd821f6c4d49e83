//! The event that reports to a driver that its controller was reset behind its back.

use super::{BARE, answer};
use crate::host::endpoint::Endpoint;
use crate::host::tests::plain_endpoint;
use node::push::ResetEvent;
use pcie::enumerate::{Bar, Device, Kind, Node, Settings};
use pcie::software::Bus;
use testkit::Folder;
use testkit::vfio_user::{Client, access, encoded, message};
use wire::vfio_user::{
    Command, DMA_FLAG_READ, DMA_FLAG_WRITE, DMA_UNMAP_FLAG_ALL, DmaMap, DmaUnmap, region_index,
};
use wire::{Bdf, Instant};

const EVENT: ResetEvent = ResetEvent { address: 0x5010, entry: [7; 16] };

fn node() -> Node {
    let bar = Bar { index: 0, size: 0x4000, is_64bit: true, prefetchable: false, address: 0x8000 };
    super::node(Bdf::new(2, 0, 0), Kind::Endpoint(Device { bars: vec![bar], ..BARE }))
}

struct World {
    endpoint: Endpoint,
    bus: Bus,
    client: Client,
    _folder: Folder,
}

impl World {
    /// A client whose memory is reached by messages.
    fn new() -> Self {
        let (folder, bus) = (Folder::new(), Bus::new());
        let settings = Settings::default();
        let endpoint = Endpoint::offer(
            &(&*folder).into(),
            0,
            0,
            node(),
            (plain_endpoint(), None),
            bus.clone(),
            settings,
        );
        let endpoint = endpoint.unwrap();
        let client = Client::greeted(endpoint.guest.server.path(), 1);
        let mut world = Self { endpoint, bus, client, _folder: folder };
        world.settle();
        assert_eq!(world.client.receive().header.error, None);
        let flags = DMA_FLAG_READ | DMA_FLAG_WRITE;
        let map = DmaMap { flags, offset: 0, address: 0x4000, size: 0x4000 };
        world.command(Command::DmaMap, &encoded(|out| map.encode(out)));
        world
    }

    fn settle(&mut self) {
        loop {
            let moved = self.endpoint.service(Instant::ZERO);
            for range in self.endpoint.guest.server.session.take_remapped() {
                self.endpoint.remapped(&range);
            }
            if !moved && self.bus.queued() == 0 {
                return;
            }
            while let Some((id, request)) = self.bus.next_request() {
                self.bus.answer(id, answer(request));
            }
        }
    }

    fn command(&mut self, command: Command, payload: &[u8]) {
        self.client.send(&message(2, command.number(), payload, false), &[]);
        self.settle();
        assert_eq!(self.client.receive().header.error, None);
    }

    fn write(&mut self, region: u32, offset: u64) {
        self.command(Command::RegionWrite, &access(region, offset, 4, &[0; 4]));
    }

    fn lose(&mut self, event: Option<ResetEvent>) {
        self.endpoint.link_down(Instant::ZERO, event, false);
        self.settle();
    }

    /// The drive is there again. Whether the client's memory gets the event.
    fn reports(&mut self) -> bool {
        self.endpoint.link_up(Instant::ZERO, &[node()]);
        self.settle();
        if self.client.is_quiet() {
            return false;
        }
        let written = self.client.receive();
        assert_eq!(written.header.command, Command::DmaWrite.number());
        assert_eq!(written.payload[..8], EVENT.address.to_le_bytes());
        assert_eq!(written.payload[16..], EVENT.entry);
        true
    }
}

#[test]
fn the_event_is_written_once_when_the_function_is_restored() {
    let mut world = World::new();
    world.write(0, 0x14);
    world.lose(Some(EVENT));
    assert!(world.client.is_quiet(), "the function is not there");
    // The driver goes on to submit commands: doorbells.
    world.write(0, 0x1000);
    // The link is lost again before the function is restored.
    world.endpoint.link_up(Instant::ZERO, &[node()]);
    world.lose(None);
    assert!(world.reports());
    world.lose(None);
    assert!(!world.reports(), "reported before");
}

#[test]
fn a_driver_that_did_anything_meanwhile_gets_no_event() {
    type Act = fn(&mut World);
    let acts: [(&str, Act); 5] = [
        ("wrote a register", |world| world.write(0, 0x14)),
        ("wrote configuration space", |world| world.write(region_index::CONFIG, 0x04)),
        ("reset the function", |world| world.command(Command::DeviceReset, &[])),
        ("unmapped the memory", |world| {
            let flags = DMA_UNMAP_FLAG_ALL;
            let unmap = DmaUnmap { argsz: 24, flags, address: 0, size: 0 };
            world.command(Command::DmaUnmap, &encoded(|out| unmap.encode(out)));
        }),
        ("wrote a register, and the link was lost again", |world| {
            world.write(0, 0x14);
            world.endpoint.link_up(Instant::ZERO, &[node()]);
            world.lose(None);
        }),
    ];
    for (case, act) in acts {
        let mut world = World::new();
        world.lose(Some(EVENT));
        act(&mut world);
        assert!(!world.reports(), "{case}");
    }
}

#[test]
fn a_register_write_that_the_root_complex_did_not_get_leaves_doubt() {
    let mut world = World::new();
    let write = access(0, 0x14, 4, &[0; 4]);
    world.client.send(&message(2, Command::RegionWrite.number(), &write, false), &[]);
    world.endpoint.service(Instant::ZERO);
    assert_eq!(world.bus.queued(), 1);
    world.lose(Some(EVENT));
    assert_eq!(world.client.receive().header.error, None);
    assert!(!world.reports());
}
