//! Servers that break rules: each is one line, at once or within the limit of replies.

use super::server::*;
use super::*;
use proptest::prelude::*;

/// An error in the first answer to a command.
fn once(command: u16, lie: impl Fn(&mut Answer) + Send + 'static) -> Lie {
    let mut done = false;
    Box::new(move |message, answer| {
        if message.command() == command && !std::mem::replace(&mut done, true) {
            lie(answer);
        }
    })
}

/// One in the payload of an answer.
fn at(command: u16, offset: usize, value: u32) -> Lie {
    once(command, move |answer| {
        answer.payload[offset..offset + 4].copy_from_slice(&value.to_le_bytes());
    })
}

#[test]
fn invalid_server_message_is_one_line_naming_it() {
    let table: Vec<(Lie, &str)> = vec![
        (
            once(VERSION, |answer| (answer.silent, answer.close) = (true, true)),
            "VERSION: the server closed the connection: no vfio-user server, or it is in use",
        ),
        (
            once(VERSION, |answer| answer.before = vec![0xff; 16]),
            "VERSION: the server sent an invalid vfio-user header",
        ),
        (at(VERSION, 0, 1), "VERSION: version '1.0': expected 0.1"),
        (once(VERSION, |answer| answer.payload.truncate(2)), "VERSION: message is shorter"),
        (once(VERSION, |answer| answer.payload[4] = b'['), "VERSION: malformed version data"),
        (
            once(VERSION, |answer| answer.header[0] = 5),
            "a reply to message 0x5, which was not sent",
        ),
        (once(VERSION, |answer| answer.header[2] = 9), "VERSION: the reply is one to command 9"),
        (
            once(GET_INFO, |answer| {
                (answer.header[8], answer.header[12]) = (0x21, 19);
                answer.payload.clear();
            }),
            "DEVICE_GET_INFO: refused: No such device",
        ),
        (at(GET_INFO, 4, 1), "DEVICE_GET_INFO: the device is not a PCI device"),
        (at(GET_INFO, 8, 7), "DEVICE_GET_INFO: invalid counts: 7 regions"),
        (at(GET_INFO, 8, u32::MAX), "invalid counts: 4294967295 regions"),
        (
            once(GET_INFO, |answer| answer.payload.truncate(8)),
            "DEVICE_GET_INFO: message is shorter",
        ),
        (at(REGION_INFO, 16, 0x3000), "region 0: invalid size of a BAR: 0x3000 bytes"),
        (at(REGION_INFO, 8, 1), "region 0: the reply is about region 1"),
        (at(REGION_INFO, 12, 60), "region 0: message is shorter"),
        (at(REGION_INFO, 40, u32::MAX), "region 0: message is shorter"),
        (at(REGION_INFO, 52, 1), "region 0: the area of 0x1000 bytes at 0x100001000 is not inside"),
        (at(REGION_INFO, 48, 0x3001), "region 0: the area of 0x1000 bytes at 0x3001 is not inside"),
        (at(REGION_INFO, 28, u32::MAX), "region 0: mmap: "),
        (once(REGION_INFO, |answer| answer.fds = vec![memfd(4096)]), "region 0: mmap: "),
        (once(REGION_INFO, |answer| answer.fds.clear()), "region 0: a mappable region needs"),
        (
            once(REGION_INFO, |answer| answer.fds.push(memfd(8192))),
            "region 0: a mappable region needs exactly one descriptor",
        ),
        (
            once(REGION_INFO, |answer| answer.fds = (0..20).map(|_| memfd(8192)).collect()),
            "DEVICE_GET_REGION_INFO: the reply is too large",
        ),
        (once(REGION_INFO, |answer| answer.payload.resize(1 << 20, 0)), "the reply is too large"),
        (at(IRQ_INFO, 12, 4096), "DEVICE_GET_IRQ_INFO: 4096 interrupts of type 2"),
        (once(DMA_MAP, |answer| answer.close = true), ": the server closed the connection"),
        (
            once(REGION_READ, |answer| answer.payload.truncate(18)),
            "REGION_READ: the reply does not match 4 bytes at 0x10 of region 7",
        ),
        (at(REGION_READ, 0, 0x20), "REGION_READ: the reply does not match 4 bytes at 0x10 of"),
    ];
    for (lie, says) in table {
        let server = Server::start(lie);
        let Err(error) = machine(&server, Clock::start()) else { panic!("no error: {says}") };
        let (error, socket) = (error.to_string(), server.socket.display().to_string());
        assert!(error.starts_with(&format!("{socket}: ")) && error.contains(says), "{error}");
        assert_eq!(error.lines().count(), 1);
    }
}

#[test]
fn a_reply_that_does_not_come_is_waited_for_5_s() {
    let clock = Clock::scripted();
    for (command, says) in [(VERSION, "VERSION: no reply"), (DMA_MAP, "DMA_MAP: no reply")] {
        clock.set(Instant::ZERO);
        let lie = once(command, move |answer| {
            answer.silent = true;
            clock.set(Instant::ZERO + REPLY_LIMIT);
        });
        let server = Server::start(lie);
        let Err(error) = machine(&server, clock) else { panic!("no error") };
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn a_write_without_a_reply_is_late_too() {
    let clock = Clock::scripted();
    let lie = once(REGION_WRITE, |answer| answer.silent = true);
    let server = Server::start(lie);
    let mut machine = machine(&server, clock).unwrap();
    let bus = machine.new_bus();
    let software = {
        let bus = bus.clone();
        async move {
            bus.config_write(FUNCTION, 0x10, 4, 0xe000_0000).await;
            bus.write(0xe000_0014, 4, 1);
        }
    };
    machine.run(&bus, software).unwrap();
    let (_, timer) = machine.pump().unwrap();
    assert_eq!(timer, Some(Instant::ZERO + REPLY_LIMIT));
    clock.set(Instant::ZERO + REPLY_LIMIT + Duration::from_ns(1));
    assert!(machine.pump().unwrap().0);
    let why = machine.lost().unwrap().to_string();
    assert!(why.ends_with("REGION_WRITE: no reply within 5 s"), "{why}");
}

#[test]
fn connect_error_names_the_socket() {
    let folder = testkit::Folder::new();
    let memory = HostMemory::new(BASE, 4096).unwrap();
    let says = |socket: std::path::PathBuf| {
        let settings = Settings { socket, doorbells: Doorbells::Auto, polled: true };
        let poller = Poller::new(Waiting::Block).unwrap();
        let machine = VfioUserClient::connect(Clock::start(), poller, settings, memory.clone());
        machine.err().expect("nobody listens").to_string()
    };
    let file = folder.join("file");
    std::fs::write(&file, b"").unwrap();
    assert!(says(folder.join("none")).contains("none: No such file"));
    assert!(says(file).contains("file: Connection refused"));
    assert!(says(folder.join("x".repeat(200))).contains("the path is too long"));
}

#[test]
fn a_page_that_is_wanted_and_not_offered_is_an_error() {
    let mut server = Server::start(at(REGION_INFO, 4, 3));
    let machine = machine_with(&server, Clock::start(), Doorbells::Mapped);
    let why = machine.err().unwrap().to_string();
    assert!(why.ends_with("the server offers no page of doorbells to map"), "{why}");
    server.end();
}

#[test]
fn a_page_in_a_file_on_a_disk_is_not_mapped_and_doorbells_go_by_message() {
    let start = || {
        // procfs is no memory, whatever the file systems of the machine are.
        let on_disk = |answer: &mut Answer| {
            answer.fds = vec![std::fs::File::open("/proc/version").unwrap().into()];
        };
        Server::start(once(REGION_INFO, on_disk))
    };
    let mut server = start();
    let mut auto = machine_with(&server, Clock::start(), Doorbells::Auto).unwrap();
    assert!(!auto.maps_doorbells());
    let bus = auto.new_bus();
    let software = {
        let bus = bus.clone();
        async move {
            bus.config_write(FUNCTION, 0x10, 4, 0xe000_0000).await;
            bus.write(0xe000_1008, 4, 77);
            bus.read(0xe000_001c, 4).await
        }
    };
    assert_eq!(auto.run(&bus, software).unwrap(), 0);
    auto.close().unwrap();
    let writes = server.end().iter().filter(|seen| seen.command() == REGION_WRITE).count();
    assert_eq!(writes, 1);
    let mut server = start();
    let why = machine_with(&server, Clock::start(), Doorbells::Mapped).err().unwrap().to_string();
    assert!(why.contains("region 0: the page of doorbells is not in memory: give"), "{why}");
    server.end();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// Any byte of any answer may be another: the client is done or refuses, and ends in any case.
    #[test]
    fn any_wrong_byte_neither_panics_nor_hangs(which in 0..24usize, at in 0..64usize, bits in 1..=255u8) {
        let (clock, mut answers) = (Clock::scripted(), 0);
        let lie = move |_: &Message, answer: &mut Answer| {
            answers += 1;
            if answers == which + 1 {
                // The time is over for a client that waits for more.
                clock.set(Instant::ZERO + REPLY_LIMIT);
                let header = answer.header.len();
                let place = match at.checked_sub(header) {
                    None => answer.header.get_mut(at),
                    Some(at) => answer.payload.get_mut(at),
                };
                place.into_iter().for_each(|byte| *byte ^= bits);
            }
        };
        let mut server = Server::start(Box::new(lie));
        if let Ok(mut machine) = machine(&server, clock) {
            let bus = machine.new_bus();
            let reads = {
                let bus = bus.clone();
                async move { bus.config_read(FUNCTION, 0, 4).await }
            };
            let _ = (machine.run(&bus, reads).unwrap(), machine.close());
        }
        server.end();
    }
}
