use super::super::{Endpoint, EndpointConfig, Event, ForeignEvent};
use super::*;
use crate::function::{Input, Output, Ready};
use proptest::prelude::*;
use wire::tlp::{ConfigKind, ConfigRequest, Packet, Tlp};
use wire::{Bdf, Instant};

const ID: Bdf = Bdf::new(3, 0, 0);

/// A virtio block device as QEMU shows it, without the capability of PCI Express: BAR 0 of I/O ports,
/// BAR 1 with MSI-X, BAR 4 with 64 bits; MSI-X, five vendor-specific capabilities, MSI.
fn virtio() -> ([u8; SIZE], [u64; 6]) {
    let mut image = [0; SIZE];
    let mut set = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    set(0x00, &[0xf4, 0x1a, 0x42, 0x10, 0, 0, 0x10, 0, 1, 0, 0, 1]);
    set(0x10, &[1, 0, 0, 0, 0, 0, 0, 0]);
    set(0x20, &[0x0c, 0, 0, 0]);
    set(0x2c, &[0xf4, 0x1a, 0, 0x11]);
    set(0x34, &[0x98]);
    set(0x3d, &[1]);
    set(0x98, &[0x11, 0x84, 1, 0, 1, 0, 0, 0, 1, 8, 0, 0]);
    for (at, next, length) in
        [(0x84, 0x70, 0x14), (0x70, 0x60, 0x14), (0x60, 0x50, 0x10), (0x50, 0x40, 0x10)]
    {
        set(at, &[9, next, length, 1, 4, 0, 0, 0]);
    }
    set(0x40, &[9, 0xa4, 0x10, 5]);
    set(0xa4, &[5, 0, 0x80]);
    (image, [0x80, 0x1000, 0, 0, 0x4000, 0])
}

fn endpoint() -> Endpoint {
    let (image, bars) = virtio();
    let foreign = Some(Foreign::new(image, bars).unwrap());
    Endpoint::new(EndpointConfig { foreign, ..EndpointConfig::new(0, 0, [0; 3]) })
}

fn send(endpoint: &mut Endpoint, packet: fn(ConfigRequest) -> Packet, at: u16, data: &[u8]) {
    let request = ConfigRequest::whole(ConfigKind::Type0, Bdf::default(), ID, at);
    let tlp = Tlp::new(packet(request), bytes::Bytes::copy_from_slice(data));
    endpoint.handle(Instant::ZERO, Input::Tlp(tlp));
}

/// The answer to a request; `device`: the double words of the device, by offset.
fn answer(endpoint: &mut Endpoint, device: &[u8]) -> u32 {
    while let Some(event) = endpoint.poll_event() {
        if let Event::Foreign(ForeignEvent::ConfigRead { offset, token }) = event {
            let at = usize::from(offset);
            endpoint.complete_config_read(token, device[at..at + 4].try_into().unwrap());
        }
    }
    match endpoint.poll(Instant::ZERO, Ready::ALL) {
        Output::Tlp(tlp) => tlp.data[..].try_into().map_or(0, u32::from_le_bytes),
        Output::Wait(_) => panic!("no answer"),
    }
}

fn read(endpoint: &mut Endpoint, at: u16) -> u32 {
    send(endpoint, Packet::ConfigRead, at, &[]);
    answer(endpoint, &virtio().0)
}

fn write(endpoint: &mut Endpoint, at: u16, value: u32) {
    send(endpoint, Packet::ConfigWrite, at, &value.to_le_bytes());
}

#[test]
fn a_virtio_device_gets_what_pci_express_needs_and_keeps_the_rest() {
    let mut endpoint = endpoint();
    assert_eq!(read(&mut endpoint, 0x00), 0x1042_1af4);
    assert_eq!(read(&mut endpoint, 0x08), 0x0100_0001);
    assert_eq!(read(&mut endpoint, 0x2c), 0x1100_1af4);
    assert_eq!(read(&mut endpoint, 0x3c) >> 8, 1);
    let bars: Vec<u32> = (0..6)
        .map(|bar| {
            write(&mut endpoint, 0x10 + 4 * bar, u32::MAX);
            answer(&mut endpoint, &[]);
            read(&mut endpoint, 0x10 + 4 * bar)
        })
        .collect();
    assert_eq!(bars, [0, 0xffff_f000, 0, 0, 0xffff_c00c, 0xffff_ffff], "no BAR of I/O ports");
    let mut list = Vec::new();
    let mut at = read(&mut endpoint, 0x34) as u16 & 0xff;
    while at != 0 {
        let word = read(&mut endpoint, at);
        list.push((at, word as u8));
        at = (word >> 8) as u16 & 0xff;
    }
    let vendor = [0x84, 0x70, 0x60, 0x50, 0x40].map(|at| (at, 9));
    let expected = [&[(0x98, 0x11)], &vendor[..], &[(0xbc, 0x10)]].concat();
    assert_eq!(list, expected, "MSI is hidden; PCI Express is in the first free place");
    assert_eq!(read(&mut endpoint, 0x50), 0x0110_4009, "the device has the length");
}

#[test]
fn writes_go_to_whom_the_byte_belongs() {
    let mut endpoint = endpoint();
    // The header of the capability and its length, one byte of which is the device's.
    write(&mut endpoint, 0x50, 0xa1b2_c3d4);
    let mut bytes = Vec::new();
    while let Some(event) = endpoint.poll_event() {
        if let Event::Foreign(ForeignEvent::ConfigWrite { offset, data }) = event {
            bytes.push((offset, data.to_vec()));
        }
    }
    assert_eq!(bytes, [(0x52, vec![0xb2, 0xa1])]);
    // Bus mastering, and MSI-X.
    for (at, value) in [(0x04, 0x6), (0x98, 1 << 31)] {
        write(&mut endpoint, at, value);
        assert_eq!(endpoint.poll_event(), Some(Event::Foreign(ForeignEvent::Configured)));
        assert_eq!(endpoint.poll_event(), None);
    }
    assert!(endpoint.is_bus_master() && endpoint.msix_enabled());
}

#[test]
fn a_read_from_before_a_reset_is_not_answered() {
    let mut endpoint = endpoint();
    send(&mut endpoint, Packet::ConfigRead, 0x50, &[]);
    let Some(Event::Foreign(ForeignEvent::ConfigRead { token, .. })) = endpoint.poll_event() else {
        panic!("a read")
    };
    endpoint.handle(Instant::ZERO, Input::HotReset);
    endpoint.complete_config_read(token, [0; 4]);
    assert!(matches!(endpoint.poll(Instant::ZERO, Ready::ALL), Output::Wait(_)));
}

#[test]
fn devices_that_cannot_be_shown_are_refused() {
    let (image, bars) = virtio();
    let with = |at: usize, byte: u8| {
        let mut image = image;
        image[at] = byte;
        Foreign::new(image, bars).err()
    };
    assert_eq!(with(0x0e, 1), Some(ForeignError::HeaderType(1)));
    for (at, byte) in [(0xa5, 0x98), (0xa5, 0x54), (0x34, 0x10), (0x42, 0xf0)] {
        assert_eq!(with(at, byte), Some(ForeignError::Capabilities), "{at:#x}");
    }
    // In BAR 2, which is absent; beyond BAR 1; in BAR 7.
    for (at, byte) in [(0x9c, 2), (0x9d, 0x10), (0x9c, 7)] {
        assert_eq!(with(at, byte), Some(ForeignError::Msix), "{at:#x}");
    }
    let mut full = image;
    full[0xb8..].fill(1);
    assert_eq!(Foreign::new(full, bars).err(), Some(ForeignError::NoRoom));
}

proptest! {
    /// Whatever the device says, its configuration space can be made and read.
    #[test]
    fn no_image_panics(
        image in proptest::collection::vec(any::<u8>(), SIZE),
        edits in proptest::collection::vec((0x34_usize..SIZE, any::<u8>()), 0..8),
        sizes in proptest::array::uniform6(0_u32..40),
    ) {
        let (valid, _) = virtio();
        let mut edited = valid;
        edits.into_iter().for_each(|(at, byte)| edited[at] = byte);
        let sizes = sizes.map(|shift| if shift < 4 { 0 } else { 1 << shift });
        for image in [image.try_into().unwrap(), edited] {
            let Ok(foreign) = Foreign::new(image, sizes) else { continue };
            let foreign = Some(foreign);
            let mut endpoint =
                Endpoint::new(EndpointConfig { foreign, ..EndpointConfig::new(0, 0, [0; 3]) });
            for at in (0..SIZE as u16).step_by(4) {
                send(&mut endpoint, Packet::ConfigRead, at, &[]);
                answer(&mut endpoint, &image);
            }
        }
    }
}
