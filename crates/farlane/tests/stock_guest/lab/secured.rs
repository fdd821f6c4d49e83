//! Keys and MACsec between two machines. The commands of the documents run in a stock kernel, and a
//! capture of the cable shows whether written data are readable.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::cli::transcripts::is_shown;
use crate::stock_guest::guest::Guest;
use crate::stock_guest::lab::json;
use crate::stock_guest::script::{Script, script};
use crate::support::folder;
use crate::support::transcript::message;
use crate::support::tshark::repository;

/// EtherType of MACsec (IEEE 802.1AE-2018, 9.4).
const MACSEC: [u8; 2] = [0x88, 0xe5];
/// EtherType of raw Ethernet links.
const FARLANE: [u8; 2] = [0x88, 0xb5];
/// Namespaces of the two machines, each with the prompt of the documents.
const MACHINES: [(&str, &str); 2] = [("device$ ", "listener"), ("host$ ", "talker")];
/// Gives the host another key, with the packet numbers that the device expects.
const WRONG_KEY: &str = "ip macsec set macsec0 tx sa 0 off && ip macsec del macsec0 tx sa 0 && \
     ip macsec add macsec0 tx sa 0 xpn 9999 ssci 2 salt 93d0a6c148ef527b06c4e81d on key 03 \
     00112233445566778899aabbccddeeff";
/// Starts of commands that are repeated until they print what the page shows: logs grow, and the
/// first handshakes of an emulated machine are late for the time limits of links.
const REPEATED: [&str; 3] = ["tail", "farlane ping", "farlane io"];
/// How long a command is repeated.
const LIMIT: Duration = Duration::from_secs(30);

/// A file to which QEMU writes the frames on the cable.
struct Wire {
    capture: PathBuf,
    /// Bytes of the capture that were read.
    read: usize,
}

impl Wire {
    /// Returns the frames since the last call.
    fn frames(&mut self) -> Vec<Vec<u8>> {
        let bytes = fs::read(&self.capture).expect("the capture");
        let mut frames = Vec::new();
        // A file header of 24 bytes; per frame a header of 16 bytes with the length in byte 8.
        self.read = self.read.max(24);
        while let Some(length) = bytes.get(self.read + 8..self.read + 12) {
            let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
            let begin = self.read + 16;
            let Some(frame) = bytes.get(begin..begin + length) else { break };
            frames.push(frame.to_vec());
            self.read = begin + length;
        }
        frames
    }
}

/// Returns the number of frames with this EtherType.
fn count(frames: &[Vec<u8>], ethertype: [u8; 2]) -> usize {
    frames.iter().filter(|frame| frame[12..14] == ethertype).count()
}

/// Blocks that each test writes to a file in the guest.
const BLOCKS: usize = 32;

/// Returns the number of blocks of a file in the guest whose first bytes are in a frame. Panics if
/// the frames are too few for the blocks.
fn readable(guest: &mut Guest, file: &str, frames: &[Vec<u8>]) -> usize {
    let output = guest.run(&script!("written").argument(file));
    let lines = output.between("written").expect("blocks").lines();
    let byte = |text: &[u8]| u8::from_str_radix(std::str::from_utf8(text).unwrap(), 16).unwrap();
    let blocks: Vec<Vec<u8>> =
        lines.map(|line| line.as_bytes().chunks(2).map(byte).collect()).collect();
    let bytes: usize = frames.iter().map(Vec::len).sum();
    assert!(blocks.len() == BLOCKS && bytes > BLOCKS * 4096, "{}, {bytes}", blocks.len());
    let on_wire = |block: &&Vec<u8>| {
        frames.iter().any(|frame| frame.windows(block.len()).any(|window| window == **block))
    };
    let found = blocks.iter().filter(on_wire).count();
    println!("{file}: {found} blocks readable in {} frames", frames.len());
    found
}

/// A command of a page, with its output there.
struct Shown {
    namespace: &'static str,
    command: String,
    output: Vec<String>,
}

/// Returns the commands in a section of a page, or of the whole page.
fn commands(page: &str, heading: Option<&str>) -> Vec<Shown> {
    let text = fs::read_to_string(repository().join(page)).expect("a page");
    let section = match heading {
        Some(heading) => text.split("\n## ").find(|part| part.starts_with(heading)),
        None => Some(text.as_str()),
    };
    let mut all: Vec<Shown> = Vec::new();
    for block in section.expect("the section").split("\n```").skip(1).step_by(2) {
        for line in block.lines().skip(1) {
            let prompt = |(prompt, name)| Some((line.strip_prefix(prompt)?.to_owned(), name));
            match MACHINES.into_iter().find_map(prompt) {
                Some((command, namespace)) => {
                    all.push(Shown { namespace, command, output: Vec::new() });
                }
                None => all.last_mut().expect("a command").output.push(line.to_owned()),
            }
        }
    }
    all
}

/// Returns lines without numbers and repeated spaces. Transcripts show lines of nodes without time
/// and level.
fn masked(text: &str) -> Vec<String> {
    let mask = |word: &str| match word.contains("SHA256:") {
        true => word.to_owned(),
        false => word.replace(|letter: char| letter.is_ascii_digit(), ""),
    };
    let line =
        |line: &str| message(line).split_whitespace().map(mask).collect::<Vec<_>>().join(" ");
    text.lines().map(line).collect()
}

/// Returns a script that runs a command on a machine.
fn terminal(namespace: &str, command: &str) -> Script {
    script!("terminal").argument(namespace).argument(command)
}

/// Runs commands of a page. Panics if they print something else than the page shows.
fn follow(guest: &mut Guest, commands: &[Shown]) {
    // Fingerprints of the page, each with that of this run.
    let mut fingerprints: Vec<(String, String)> = Vec::new();
    for Shown { namespace, command, output } in commands {
        let here = |text: &str| {
            let replace = |text: String, (page, here): &(String, String)| text.replace(page, here);
            fingerprints.iter().fold(text.to_owned(), replace)
        };
        let script = terminal(namespace, &here(command));
        let begun = Instant::now();
        println!("{namespace}$ {}", here(command));
        loop {
            let printed = guest.try_run(&script).text;
            if command.starts_with("farlane key new") {
                fingerprints.push((output[0].clone(), printed.trim().to_owned()));
                break;
            }
            let (shown, all) = (masked(&here(&output.join("\n"))), masked(printed.trim_end()));
            if is_shown(&shown, &all) {
                println!("{printed}");
                break;
            }
            let again = REPEATED.iter().any(|start| command.starts_with(start));
            assert!(
                again && begun.elapsed() < LIMIT,
                "'{command}' printed:\n{printed}instead of:\n{}",
                output.join("\n")
            );
        }
    }
}

/// Returns a counter of the device's MACsec interface.
fn counter(guest: &mut Guest, name: &str) -> u64 {
    let show = "ip -s -j macsec show macsec0";
    // Counters are both of the interface and of a channel.
    let mut shown = json(&guest.run(&terminal("listener", show)).text)[0].take();
    let channel = shown["rx_sc"][0].take();
    let count = shown[name].as_u64().or_else(|| channel[name].as_u64());
    count.unwrap_or_else(|| panic!("no {name}: {shown}, {channel}"))
}

#[test]
fn keys_and_macsec_hide_data_from_the_cable() {
    let capture = folder::kept("lab-secured/wire").join("wire.pcap");
    let dump = format!("filter-dump,id=dump,netdev=net,file={}", capture.display());
    let mut guest = Guest::builder("lab-secured/guest")
        .lab()
        // A hub takes frames only if it has a second port.
        .option("-netdev", "hubport,id=net,hubid=0")
        .option("-netdev", "hubport,id=sink,hubid=0")
        .option("-object", dump)
        .device("virtio-net-pci,netdev=net,romfile=,mac=02:00:5e:00:53:31")
        .start();
    let mut wire = Wire { capture, read: 0 };
    guest.run(&script!("network"));
    guest.run(&script!("wire"));

    // Without protection, the capture has the data. A few blocks may begin at the end of a frame.
    for (listen, connect) in
        [("198.51.100.2:7001", "198.51.100.2:7001"), ("raw:eth0", "raw:eth0,02:00:5e:00:53:02")]
    {
        guest.run(&script!("copied").argument(listen).argument(connect));
        let found = readable(&mut guest, "/run/copied", &wire.frames());
        assert!(found > BLOCKS / 2, "{connect}: {found}");
    }

    follow(&mut guest, &commands("docs/guide/keys.md", None));
    assert_eq!(readable(&mut guest, "/run/listener/disk.img", &wire.frames()), 0);

    follow(&mut guest, &commands("docs/security.md", Some("Raw Ethernet: MACsec")));
    let frames = wire.frames();
    assert_eq!(readable(&mut guest, "/run/listener/raw.img", &frames), 0);
    assert_eq!(count(&frames, FARLANE), 0);
    assert!(count(&frames, MACSEC) > BLOCKS);

    // Frames under another key, and frames without MACsec, do not reach the device node.
    guest.run(&terminal("talker", WRONG_KEY));
    for (interface, count) in [("macsec0", "InPktsNotValid"), ("eth0", "InPktsNoTag")] {
        let before = counter(&mut guest, count);
        let ping = format!("farlane ping raw:{interface},02:00:5e:00:53:02 --insecure");
        let output = guest.try_run(&terminal("talker", &ping));
        assert!(output.status != 0 && output.text.contains("no answer"), "{}", output.text);
        assert!(counter(&mut guest, count) > before, "{interface}");
    }
    guest.run(&terminal("talker", "ip link add wg0 type wireguard"));
    guest.power_off();
}
