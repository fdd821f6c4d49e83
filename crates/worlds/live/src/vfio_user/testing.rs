//! For tests and fuzz targets: an endpoint, and random messages for a session.

use super::action::Input;
use super::connection::{Incoming, MAX_PAYLOAD};
use super::session::Session;
use super::{Action, EndpointInfo, Presence};
use bytes::Bytes;
use pcie::enumerate::Bar;
use wire::vfio_user::Header;
use wire::{Duration, Instant};

/// A function with 16 KiB of BAR 0 (registers, doorbells at 0x1000, MSI-X
/// table at 0x2000 and pending bits at 0x3000), four vectors, and the
/// capabilities MSI-X, Express with FLR, MSI, power management and SR-IOV.
pub(crate) fn plain_endpoint() -> EndpointInfo {
    let mut config = Box::new([0_u8; 4096]);
    let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &[0x36, 0x1b, 0x01, 0x00, 0x06, 0x00, 0x10, 0x00]);
    put(0x08, &[0x01, 0x00, 0x00, 0xff]);
    put(0x10, &[0x04, 0x00, 0x00, 0xe0]);
    put(0x2c, &[0x36, 0x1b, 0x01, 0x00]);
    put(0x34, &[0x50]);
    put(0x3d, &[0x01]);
    put(0x50, &[0x11, 0x60, 0x03, 0x80, 0x00, 0x20, 0x00, 0x00, 0x00, 0x30, 0x00, 0x00]);
    put(0x60, &[0x10, 0xa0, 0x02, 0x00, 0x01, 0x80, 0x00, 0x10, 0x1f, 0x20, 0x00, 0x00]);
    put(0xa0, &[0x05, 0xc0, 0x80, 0x00]);
    put(0xc0, &[0x01, 0x00, 0x03, 0x00]);
    put(0x100, &0x1401_0010_u32.to_le_bytes());
    put(0x108, &[0xff; 4]);
    put(0x140, &0x0001_0003_u32.to_le_bytes());
    let mut bars = [None; 6];
    bars[0] = Some(Bar {
        index: 0,
        size: 0x4000,
        is_64bit: true,
        prefetchable: false,
        address: 0xe000_0000,
    });
    EndpointInfo { config, bars, doorbells: false }
}

/// The same with its doorbells shared.
pub(crate) fn shared_endpoint() -> EndpointInfo {
    EndpointInfo { doorbells: true, ..plain_endpoint() }
}

/// Reads `input` as a list of operations on a session (connect, message, disconnect, reply, DMA,
/// interrupt, time) and carries them out. Panics if a promise of [`Session`] is broken.
pub fn run_messages(input: &[u8]) {
    let Ok(mut session) = Session::new(shared_endpoint()) else { return };
    let mut now = Instant::ZERO;
    let mut connected = false;
    let mut tokens = Vec::new();
    let mut rest = input;
    let mut take = |count: usize| {
        let (head, tail) = rest.split_at(count.min(rest.len()));
        rest = tail;
        head.to_vec()
    };
    while let [operation] = take(1)[..] {
        match operation & 0xf {
            0 if connected => {
                session.handle(now, Input::Disconnected);
                connected = false;
            }
            1 => tokens.iter().take(3).for_each(|token| session.reply(now, *token, Ok(&[1; 4]))),
            2 => {
                now += Duration::from_ms(u64::from(operation) * 20);
            }
            3 => {
                let at = take(4);
                let address = at.iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
                let _ = session.dma_read(now, address << 8, usize::from(operation) * 17);
                let _ = session.dma_write(now, address << 8, &at);
            }
            4 => {
                session.signal(u16::from(operation >> 4));
                session.set_intx(operation & 0x10 != 0);
                session.poll_doorbells();
            }
            5 => session.set_presence(
                now,
                match operation >> 4 {
                    0..4 => Presence::Absent,
                    4..8 => Presence::ConfigOnly,
                    _ => Presence::Present,
                },
            ),
            6 => {
                for token in tokens.drain(..) {
                    let result = Err(rustix::io::Errno::IO);
                    session.reply(now, token, if operation < 0x80 { Ok(&[]) } else { result });
                }
            }
            _ if session.accepts_input() => {
                if !connected {
                    session.handle(now, Input::Connected);
                    connected = true;
                }
                let mut head = [0; Header::SIZE];
                let given = take(8);
                head[..given.len()].copy_from_slice(&given);
                // Mostly existing commands with the right size.
                head[2] &= 0x1f;
                head[3] = 0;
                head[8] = head[5] & 0x31;
                let length = usize::from(head[4]).min(MAX_PAYLOAD);
                head[4..8].copy_from_slice(&((Header::SIZE + length) as u32).to_le_bytes());
                let mut payload = take(length);
                payload.resize(length, 0);
                let Ok(header) = Header::decode(&head) else { continue };
                let message = Incoming {
                    header,
                    payload: Bytes::from(payload),
                    fds: Vec::new(),
                    refusal: None,
                };
                session.handle(now, Input::Message(message));
            }
            _ => {}
        }
        while let Some(action) = session.poll(now) {
            match action {
                Action::ConfigRead { token, .. }
                | Action::ConfigWrite { token, .. }
                | Action::BarRead { token, .. }
                | Action::Reset { token }
                | Action::ClientGone { token } => tokens.push(token),
                Action::BarWrite { offset, data, .. } => {
                    assert!(!data.is_empty() && offset + data.len() as u64 <= 0x4000);
                }
                _ => {}
            }
        }
        tokens.truncate(256);
        while let Some(message) = session.outgoing() {
            let header = Header::decode(&message.bytes).expect("a header of ours");
            assert_eq!(header.size as usize, message.bytes.len());
            assert_ne!(header.error, Some(0), "errno 0 reads as success");
        }
    }
}
