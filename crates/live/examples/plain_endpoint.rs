//! Offers a device that is nothing but registers, to see what a VMM does:
//! `plain_endpoint DIR [dma|doorbells]`, then point QEMU at `DIR/0/cntrl`. Prints every
//! action. A write to register 0x20 signals that vector, one to 0x24 sets INTx.
//! With `dma`, reads and writes 0x100000 once a second; with `doorbells`, the
//! page at 0x1000 can be mapped.

use live::vfio_user::{Action, Server, testing};
use rustix::event::{PollFd, PollFlags, Timespec};
use std::path::Path;
use wire::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let directory = arguments.get(1).ok_or("usage: plain_endpoint DIR [dma|doorbells]")?;
    let mode = arguments.get(2).map_or("", String::as_str);
    let info =
        if mode == "doorbells" { testing::shared_endpoint() } else { testing::plain_endpoint() };
    let mut config = info.config.to_vec();
    let mut bar = vec![0_u8; 0x4000];
    let mut server = Server::bind(Path::new(directory), 0, info)?;
    println!("listening on {}", server.path().display());
    let begin = std::time::Instant::now();
    let mut next_dma = 1_000_000_000;
    loop {
        let now = Instant::from_ns(begin.elapsed().as_nanos() as u64);
        let mut fds = [PollFd::new(&server, PollFlags::IN)];
        let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        rustix::event::poll(&mut fds, Some(&timeout))?;
        server.service(now);
        if mode == "dma" && server.connected() && now.as_ns() > next_dma {
            next_dma = now.as_ns() + 1_000_000_000;
            let pattern: Vec<u8> = (0..=255).collect();
            println!("{now} dma_write {:?}", server.dma_write(now, 0x10_0000, &pattern));
            println!("{now} dma_read {:?}", server.dma_read(now, 0x10_0000, 64));
        }
        server.poll_doorbells();
        while let Some(action) = server.poll(now) {
            println!("{now} {action:02x?}");
            match action {
                Action::ConfigRead { token, offset, size } => {
                    let at = usize::from(offset);
                    server.reply(now, token, Ok(&config[at..at + usize::from(size)]));
                }
                Action::ConfigWrite { token, offset, size, value } => {
                    let at = usize::from(offset);
                    if at == 4 {
                        config[at..at + usize::from(size.min(2))]
                            .copy_from_slice(&value.to_le_bytes()[..usize::from(size.min(2))]);
                    }
                    server.reply(now, token, Ok(&[]));
                }
                Action::BarRead { token, offset, length, .. } => {
                    let at = offset as usize;
                    server.reply(now, token, Ok(&bar[at..at + length]));
                }
                Action::BarWrite { offset, data, .. } => {
                    if offset == 0x20 {
                        server.signal(u16::from(data[0]));
                    }
                    if offset == 0x24 {
                        server.set_intx(data[0] != 0);
                    }
                    bar[offset as usize..offset as usize + data.len()].copy_from_slice(&data);
                }
                Action::Reset { token, .. } | Action::ClientGone { token } => {
                    bar.fill(0);
                    server.reply(now, token, Ok(&[]));
                }
                Action::ClientReady | Action::MsixEnable(_) | Action::DmaDone { .. } => {}
            }
        }
        if let Some(closed) = server.take_closed() {
            println!("{now} {closed}; {:?}; {:?}", server.counters(), server.memory().ranges());
        }
    }
}
