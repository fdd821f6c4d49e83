//! The client against servers of raw bytes, honest ones and liars, and against our own.

mod lies;
mod ours;
mod server;

use super::*;
use crate::poller::Waiting;
use pcie::Backing;
use server::{Answer, Lie, Message, Server};
use vfio_user::client::{FUNCTION, REPLY_LIMIT};

const BASE: u64 = 0x1_0000_0000;

/// A machine with a correct server, or the error.
fn machine(server: &Server, clock: Clock) -> Result<VfioUserClient, Error> {
    machine_with(server, clock, Doorbells::Auto)
}

fn machine_with(
    server: &Server,
    clock: Clock,
    doorbells: Doorbells,
) -> Result<VfioUserClient, Error> {
    let memory = HostMemory::new(BASE, 0x3000).unwrap();
    memory.write(0x10, b"secret").unwrap();
    let settings = Settings { socket: server.socket.clone(), doorbells, polled: false };
    VfioUserClient::connect(clock, Poller::new(Waiting::Block).unwrap(), settings, memory)
}

fn truth() -> Lie {
    Box::new(|_, _| ())
}

#[test]
fn the_first_messages_are_those_of_the_specification() {
    let mut server = Server::start(truth());
    let mut machine = machine(&server, Clock::start()).unwrap();
    assert!(machine.maps_doorbells());
    assert_eq!(machine.server(), Some(std::process::id()));
    machine.close().unwrap();
    let seen = server.end();
    let commands: Vec<u16> = seen.iter().map(Message::command).collect();
    // VERSION; DEVICE_GET_INFO; eight DEVICE_GET_REGION_INFOs; DEVICE_GET_IRQ_INFO; DEVICE_RESET;
    // DMA_MAP; the six BAR registers and the capability pointer; DMA_UNMAP.
    let wanted = [&[1, 4][..], &[5; 8], &[7, 13, 2], &[9; 7], &[3]].concat();
    assert_eq!(commands, wanted);
    let ids = seen.iter().map(|message| u16::from_le_bytes([message.bytes[0], message.bytes[1]]));
    assert!(ids.eq(0..seen.len() as u16));
    let version =
        b"\0\0\x01\0{\"capabilities\":{\"max_data_xfer_size\":65536,\"max_dma_maps\":65535,\
        \"max_msg_fds\":16,\"pgsizes\":4096,\"write_multiple\":false}}\0";
    assert_eq!(String::from_utf8_lossy(seen[0].payload()), String::from_utf8_lossy(version));
    let map = &seen[12];
    // argsz 32; readable and writable; file offset 0; address and size.
    let fields: Vec<u64> =
        map.payload().as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
    assert_eq!(fields, [32 | 3 << 32, 0, BASE, 0x3000]);
    assert_eq!(map.fds.len(), 1);
    let mut shared = [0; 6];
    rustix::io::pread(&map.fds[0], &mut shared, 0x10).unwrap();
    assert_eq!(&shared, b"secret");
    assert!(rustix::fs::ftruncate(&map.fds[0], 0).is_err(), "sealed");
}

#[test]
fn doorbells_are_stored_into_the_page_and_registers_written_by_message() {
    let mut server = Server::start(truth());
    let mut machine = machine(&server, Clock::start()).unwrap();
    let bus = machine.new_bus();
    let software = {
        let bus = bus.clone();
        async move {
            bus.config_write(FUNCTION, 0x10, 4, 0xe000_0000).await;
            bus.write(0xe000_1008, 4, 77);
            bus.write(0xe000_0014, 4, 1);
            bus.write(0xe000_2000, 4, 5);
            bus.read(0xe000_001c, 4).await
        }
    };
    assert_eq!(machine.run(&bus, software).unwrap(), 0);
    let mut stored = [0; 4];
    rustix::io::pread(&server.page, &mut stored, 0x1008).unwrap();
    assert_eq!(u32::from_le_bytes(stored), 77);
    machine.close().unwrap();
    let seen = server.end();
    let offset =
        |message: &&Message| message.payload()[..8].try_into().map(u64::from_le_bytes).unwrap();
    let received = |command: u16| seen.iter().filter(move |message| message.command() == command);
    let writes: Vec<u64> = received(server::REGION_WRITE).map(|message| offset(&message)).collect();
    assert_eq!(writes, [0x14, 0x2000], "neither BARs nor doorbells");
}

#[test]
fn truncated_page_ends_connection_without_crash() {
    let server = Server::start(truth());
    let mut machine = machine(&server, Clock::start()).unwrap();
    let bus = machine.new_bus();
    rustix::fs::ftruncate(&server.page, 0).unwrap();
    let software = {
        let bus = bus.clone();
        async move {
            bus.config_write(FUNCTION, 0x10, 4, 0xe000_0000).await;
            (0..2).for_each(|value| bus.write(0xe000_1000, 4, value));
            bus.config_read(FUNCTION, 0, 4).await
        }
    };
    assert_eq!(machine.run(&bus, software).unwrap(), u32::MAX, "nothing answers");
    let why = machine.lost().unwrap().to_string();
    assert!(why.ends_with("cntrl: the server removed its page of doorbells"), "{why}");
    machine.close().unwrap();
}

#[test]
fn the_servers_messages_reach_the_memory_and_nothing_else() {
    // DMA_READ of 6 bytes, DMA_WRITE of 2, DMA_READ across the end, a DMA_WRITE with less data than
    // its count, and an undefined command.
    let ask = |command: u8, at: u64, count: u64, data: &[u8]| {
        let mut bytes = vec![9, 9, command, 0, 32 + data.len() as u8, 0, 0, 0];
        bytes.extend([0; 8]);
        bytes.extend(at.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend(data);
        bytes
    };
    let before = [
        ask(11, BASE + 0x10, 6, &[]),
        ask(12, BASE + 0x2ffe, 2, &[7, 8]),
        ask(11, BASE + 0x2ffe, 4, &[]),
        ask(12, BASE, 9, &[1]),
        ask(99, BASE, 0, &[]),
    ]
    .concat();
    let mut before = Some(before);
    let lie = move |message: &Message, answer: &mut Answer| {
        if message.command() == server::REGION_READ {
            answer.before = before.take().unwrap_or_default();
        }
        // Replies to what we asked are no commands.
        answer.silent |= message.bytes[8] == 1 || message.bytes[8] == 0x21;
    };
    let mut server = Server::start(Box::new(lie));
    let mut machine = machine(&server, Clock::start()).unwrap();
    let memory = machine.memory.clone();
    machine.close().unwrap();
    let mut end = [0; 2];
    memory.read(0x2ffe, &mut end).unwrap();
    assert_eq!(end, [7, 8]);
    let seen = server.end();
    let replies: Vec<&Message> =
        seen.iter().filter(|message| message.bytes[..2] == [9, 9]).collect();
    let errnos: Vec<u8> = replies.iter().map(|reply| reply.bytes[12]).collect();
    // EFAULT, EINVAL, EOPNOTSUPP.
    assert_eq!(errnos, [0, 0, 14, 22, 95]);
    assert_eq!(&replies[0].payload()[16..], b"secret");
    assert_eq!(replies[1].payload().len(), 16);
    assert!(replies[2..].iter().all(|reply| reply.payload().is_empty()));
}
