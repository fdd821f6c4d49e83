//! A vfio-user server: a client in the same process drives a PCI function over a Unix socket.
//!
//! The server turns messages into actions, which this program carries out on a function that fills
//! memory by DMA. QEMU and SPDK can be clients too; here a thread is. To serve a `pcie::Function`,
//! put a root complex between both, as `live::host` does.

use pcie::config::{command, register};
use pcie::enumerate::Bar;
use std::{fs, path::Path, rc::Rc, thread};
use vfio_user::client::{Device, Doorbells, HostMemory};
use vfio_user::{Action, EndpointInfo, Server};
use wire::{Instant, vfio_user::region_index::CONFIG};

const NOW: Instant = Instant::ZERO; // without a clock nothing times out
/// A register of 8 bytes in BAR 0: where in the client's memory to write.
const ADDRESS: u64 = 0;
/// A register of one byte: a write fills 16 bytes of the client's memory with this byte.
const FILL: u64 = 8;

struct Filler {
    config: [u8; 4096],
    bar0: [u8; 4096],
}

impl Filler {
    fn new() -> Self {
        let mut config = [0; 4096];
        config[..4].copy_from_slice(&[0x34, 0x12, 0x01, 0x00]); // vendor and device
        Self { config, bar0: [0; 4096] }
    }

    /// What the server has to know of the function.
    fn info(&self) -> EndpointInfo {
        let bar = Bar { index: 0, size: 4096, is_64bit: false, prefetchable: false, address: 0 };
        let bars = [Some(bar), None, None, None, None, None];
        EndpointInfo { config: Box::new(self.config), bars, doorbells: false }
    }

    fn carry_out(&mut self, action: Action, server: &mut Server) {
        match action {
            Action::ConfigRead { token, offset, size } => {
                let at = usize::from(offset);
                server.reply(NOW, token, Ok(&self.config[at..at + usize::from(size)]));
            }
            Action::ConfigWrite { token, offset, value, .. } => {
                // Only the command register can be written.
                if offset == register::COMMAND {
                    self.config[4..6].copy_from_slice(&value.to_le_bytes()[..2]);
                }
                server.reply(NOW, token, Ok(&[]));
            }
            Action::BarRead { token, offset, length, .. } => {
                server.reply(NOW, token, Ok(&self.bar0[offset as usize..][..length]));
            }
            Action::BarWrite { offset, data, .. } => {
                self.bar0[offset as usize..][..data.len()].copy_from_slice(&data);
                // DMA needs the client's permission: bus mastering.
                let is_master = u16::from(self.config[4]) & command::BUS_MASTER != 0;
                if offset == FILL && is_master {
                    let address = u64::from_le_bytes(*self.bar0.first_chunk().expect("8 bytes"));
                    server.dma_write(NOW, address, &[data[0]; 16]);
                }
            }
            Action::Reset { token } | Action::ClientGone { token } => {
                *self = Self::new();
                server.reply(NOW, token, Ok(&[]));
            }
            Action::MsixEnable(_) | Action::DmaDone { .. } => {}
        }
    }
}

/// The client has the function fill its memory. Returns the bytes.
fn client(socket: &Path) -> Vec<u8> {
    let memory = HostMemory::new(0x10_0000, 1 << 20).expect("memory");
    let device = Device::connect(socket, Rc::new(|| NOW), memory.clone(), Doorbells::Message);
    let mut device = device.expect("a server");
    device.write(CONFIG, 4, 2, 0b110).expect("memory space and bus mastering");
    device.write(0, ADDRESS, 8, memory.base).expect("a register");
    device.write(0, FILL, 1, 7).expect("a register");
    // The reply to a read comes after the DMA of earlier writes.
    device.read(0, FILL, 1).expect("a register");
    memory.dma_read(memory.base, 16).expect("16 bytes").to_vec()
}

/// Serves the function until the client has ended.
fn serve() -> Vec<u8> {
    let folder = std::env::temp_dir().join(format!("farlane-example-{}", std::process::id()));
    let mut function = Filler::new();
    let mut server = Server::bind(&folder, 0, function.info()).expect("a socket");
    let socket = server.path().to_owned();
    let client = thread::spawn(move || client(&socket));
    while !client.is_finished() {
        server.service(NOW);
        while let Some(action) = server.poll(NOW, true) {
            function.carry_out(action, &mut server);
        }
    }
    fs::remove_dir_all(folder).expect("the socket's folder");
    client.join().expect("a client that succeeds")
}

fn main() {
    println!("the function wrote {:?}", serve());
}

#[test]
fn function_fills_memory_of_client() {
    assert_eq!(serve(), [7; 16]);
}
