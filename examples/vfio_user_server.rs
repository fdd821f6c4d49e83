//! A vfio-user server: a client in the same process drives a PCI function over a Unix socket.
//!
//! The function is `pcie::dma_test`, which fills memory by DMA. QEMU and SPDK can be clients of such
//! a server too. Here the client is a thread.

use node::host::{Buses, HostNode, Input, Output};
use pcie::dma_test::{DmaTest, Settings, control, register, status};
use pcie::enumerate::{self, Node, reset_function};
use pcie::root::HostOutput;
use pcie::{Bus, root, software::Task};
use std::{fs, path::Path, rc::Rc, thread};
use vfio_user::client::{Device, Doorbells, HostMemory};
use vfio_user::{Action, EndpointInfo, Server, Token};
use wire::{Instant, vfio_user::region_index::CONFIG};

/// Without a clock nothing times out, and sleeps end at once.
const NOW: Instant = Instant::ZERO;

/// A root complex with the function below, and the requests of host software.
struct Machine(HostNode<DmaTest>, Buses);

impl Machine {
    /// Runs host software to its end. DMA goes to the memory of the server's client.
    fn run<T>(&mut self, mut server: Option<&mut Server>, mut software: Task<T>) -> T {
        let Self(host, buses) = self;
        loop {
            let result = software.poll(NOW);
            while let Some((id, request)) = buses.next_request(NOW, |_| true) {
                host.handle(NOW, Input::Request(id, request));
            }
            while let Output::Host(output) = host.poll(NOW) {
                match (output, &mut server) {
                    (HostOutput::Answer(id, value), _) => buses.answer(id, value),
                    (HostOutput::HostWrite { address, data, .. }, Some(server)) => {
                        server.dma_write(NOW, address, &data);
                    }
                    _ => {} // a fill reads nothing, and the client polls for its end
                }
            }
            buses.wake(buses.timer().unwrap_or(NOW));
            if let Some(result) = result {
                return result;
            }
        }
    }
}

/// Finds the function, as firmware does, and reads its configuration space.
async fn boot(bus: Bus) -> (Node, EndpointInfo) {
    let found = enumerate::enumerate(bus.clone(), enumerate::Settings::default()).await;
    let (node, mut config) = (found.expect("a tree").endpoints()[0].clone(), Box::new([0; 4096]));
    for (word, bytes) in config.chunks_mut(4).enumerate() {
        bytes.copy_from_slice(&bus.config_read(node.bdf, word as u16 * 4, 4).await.to_le_bytes());
    }
    let bars = std::array::from_fn(|index| node.bar(index as u8));
    (node, EndpointInfo { config, bars, doorbells: false })
}

/// Does what the client wants of the function. Returns the reply, if there is to be one.
async fn carry_out(bus: Bus, node: Node, action: Action) -> Option<(Token, Vec<u8>)> {
    let (bdf, bar0) = (node.bdf, node.bar(0)?.address);
    let (token, value, length) = match action {
        Action::ConfigRead { token, offset, size } => {
            (token, bus.config_read(bdf, offset, size).await.into(), size.into())
        }
        Action::ConfigWrite { token, offset, size, value } => {
            bus.config_write(bdf, offset, size, value).await;
            (token, 0, 0)
        }
        Action::BarRead { token, offset, length, .. } => {
            (token, bus.read(bar0 + offset, length as u8).await, length)
        }
        Action::BarWrite { offset, data, .. } => {
            (offset..).zip(data).for_each(|(at, byte)| bus.write(bar0 + at, 1, byte.into()));
            return None;
        }
        Action::Reset { token } | Action::ClientGone { token } => {
            reset_function(&bus, &node, &enumerate::Settings::default()).await;
            (token, 0, 0)
        }
        Action::MsixEnable(_) | Action::DmaDone { .. } => return None,
    };
    Some((token, u64::to_le_bytes(value)[..length].to_vec()))
}

/// The client fills 16 bytes of its memory through the function's registers.
fn client(socket: &Path) -> Vec<u8> {
    let memory = HostMemory::new(0x10_0000, 1 << 20).expect("memory");
    let now = Rc::new(|| NOW);
    let mut device = Device::connect(socket, now, memory.clone(), Doorbells::Message).expect("it");
    device.write(CONFIG, 0x04, 2, 0b110).expect("memory space and bus mastering");
    device.write(0, register::DESTINATION, 8, memory.base).expect("a register");
    device.write(0, register::LENGTH, 4, 16).expect("a register");
    device.write(0, register::PATTERN, 4, 0x0403_0201).expect("a register");
    device.write(0, register::CONTROL, 4, control::FILL.into()).expect("the doorbell");
    while device.read(0, register::STATUS, 4).expect("a register") as u32 & status::DONE == 0 {}
    memory.dma_read(memory.base, 16).expect("16 bytes").to_vec()
}

/// Serves the function until the client has ended. Returns what the client found in its memory.
fn serve() -> Vec<u8> {
    let mut buses = Buses::default();
    let bus = buses.new_bus();
    let host = HostNode::new(root::Settings::default(), DmaTest::new(Settings::default()));
    let mut machine = Machine(host, buses);
    let (node, info) = machine.run(None, Task::new(&bus, boot(bus.clone())));
    let folder = std::env::temp_dir().join(format!("farlane-example-{}", std::process::id()));
    let mut server = Server::bind(&folder, 0, info).expect("a socket");
    let socket = server.path().to_owned();
    let client = thread::spawn(move || client(&socket));
    while !client.is_finished() {
        server.service(NOW);
        while let Some(action) = server.poll(NOW, true) {
            let task = Task::new(&bus, carry_out(bus.clone(), node.clone(), action));
            if let Some((token, data)) = machine.run(Some(&mut server), task) {
                server.reply(NOW, token, Ok(&data));
            }
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
    assert_eq!(serve(), [1, 2, 3, 4].repeat(4));
}
