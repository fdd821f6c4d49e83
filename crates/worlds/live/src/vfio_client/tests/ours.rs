//! The client against our own server: BARs and MSI-X.

use super::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use testkit::Folder;
use vfio_user::{Action, EndpointInfo};

/// Runs our server with a device that signals a vector for each doorbell: the value is the vector.
fn serve(mut server: vfio_user::Server, config: &[u8], stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::ZERO;
        server.service(now);
        server.session.poll_doorbells();
        while let Some(action) = server.poll(now, true) {
            match action {
                Action::ConfigRead { token, offset, size } => {
                    let at = usize::from(offset);
                    server.reply(now, token, Ok(&config[at..at + usize::from(size)]));
                }
                Action::BarRead { token, length, .. } => {
                    server.reply(now, token, Ok(&vec![0; length]));
                }
                Action::BarWrite { data, .. } => server.session.signal(data[0].into()),
                Action::ConfigWrite { token, .. }
                | Action::Reset { token }
                | Action::ClientGone { token } => server.reply(now, token, Ok(&[])),
                Action::MsixEnable(_) | Action::DmaDone { .. } => {}
            }
        }
        std::thread::yield_now();
    }
}

#[test]
fn bars_are_sized_here_and_vectors_come_by_eventfd() {
    let (folder, stop) = (Folder::new(), Arc::new(AtomicBool::new(false)));
    let (config, bars) = testkit::vfio_user::plain_function();
    let info = EndpointInfo { config, bars, doorbells: true };
    let config = info.config.to_vec();
    let server = vfio_user::Server::bind(&folder, 0, info).unwrap();
    let thread = {
        let stop = stop.clone();
        std::thread::spawn(move || serve(server, &config, &stop))
    };
    let socket = folder.join("0/cntrl");
    let settings = Settings { socket, doorbells: Doorbells::Auto, polled: false };
    let memory = HostMemory::new(BASE, 4096).unwrap();
    let poller = Poller::new(Waiting::Block).unwrap();
    let mut machine = VfioUserClient::connect(Clock::start(), poller, settings, memory).unwrap();
    let bus = machine.new_bus();
    let software = {
        let bus = bus.clone();
        async move {
            bus.config_write(FUNCTION, 0x10, 4, u32::MAX).await;
            let size = bus.config_read(FUNCTION, 0x10, 4).await;
            bus.config_write(FUNCTION, 0x10, 4, 0xe000_0000).await;
            // Vectors 0 to 2 signal 100 to 102; vector 3 stays masked.
            for vector in 0..3 {
                bus.write(0xe000_2008 + vector * 16, 4, 100 + vector);
                bus.write(0xe000_200c + vector * 16, 4, 0);
            }
            // MSI-X Enable, in the capability at 50h.
            bus.config_write(FUNCTION, 0x52, 2, 0x8000).await;
            let entry = bus.read(0xe000_2018, 4).await;
            bus.write(0xe000_1000, 4, 2);
            bus.write(0xe000_1004, 4, 1);
            (size, entry)
        }
    };
    assert_eq!(machine.run(&bus, software).unwrap(), (0xffff_c004, 101));
    let mut data = Vec::new();
    while data.len() < 2 {
        let (moved, timer) = machine.pump().unwrap();
        data.extend(std::iter::from_fn(|| machine.next_interrupt()));
        machine.wait(moved, timer).unwrap();
    }
    data.sort_unstable();
    assert_eq!(data, [101, 102]);
    machine.close().unwrap();
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
}
