//! Captures of simulated wires; what tshark says of them is in
//! `tests/wireshark`.

use super::{PRIORITY, gated, mixed, observed};
use crate::Plan;
use crate::simulate::limits::Assumptions;
use crate::simulate::{OutputFiles, Outputs};
use report::target::Target;
use sim::Config;
use sim::world::Report;
use wire::Duration;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The capture of a whole run: its report, and the blocks of the file, each with its type.
fn captured(config: &Config, named: &dyn Fn(&str) -> String) -> (Report, Vec<(u32, Vec<u8>)>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("wires.pcapng");
    let files = OutputFiles { pcapng: Some(Target::File(path.clone())), ..OutputFiles::default() };
    let (report, ..) = observed(config, &files, named);
    let bytes = std::fs::read(&path).unwrap();
    let (mut rest, mut blocks) = (&bytes[..], Vec::new());
    while !rest.is_empty() {
        let (block, more) = rest.split_at(word(rest, 4) as usize);
        blocks.push((word(block, 0), block.to_vec()));
        rest = more;
    }
    (report.unwrap(), blocks)
}

#[test]
fn frames_of_all_wires_are_in_order_with_their_tags() {
    let config = gated(mixed(2), Duration::from_us(300), Duration::from_us(500));
    let (report, blocks) = captured(&config, &str::to_owned);
    let (mut interfaces, mut frames, mut last) = (0, [0u64; 4], 0);
    for (kind, block) in blocks {
        match kind {
            1 => interfaces += 1,
            6 => {
                let time = u64::from(word(&block, 12)) << 32 | u64::from(word(&block, 16));
                assert!(time >= last);
                last = time;
                frames[word(&block, 8) as usize] += 1;
                assert_eq!(block[28 + 12..28 + 14], [0x81, 0x00], "a tag");
                assert!([0, PRIORITY].contains(&(block[28 + 14] >> 5)));
            }
            _ => assert_eq!(kind, 0x0a0d_0d0a),
        }
    }
    assert_eq!(interfaces, 4, "two cables, both ways");
    assert!(last <= report.time.as_ns());
    // As many as the links carried since the workload began, and those before.
    let names = ["station 0 to bridge 0 port 0", "bridge 0 port 0 to station 0"];
    for (wire, name) in names.into_iter().enumerate() {
        let link = report.links.iter().find(|link| link.name == name).unwrap();
        assert!(frames[wire] > link.load.packets, "{name}: {frames:?}");
    }
}

/// Interfaces have the plan's names, as tables do.
#[test]
fn interfaces_have_the_names_of_the_plan() {
    let text = "[hosts.ecu]\n[nodes.store]\n[bridges.br1]\n[workload]\nconfigreads = 5\n";
    let planned = Plan::parse("p.toml", text).unwrap().build().unwrap();
    let (_, blocks) = captured(&planned.config, &|words| planned.link_name(words));
    let mut names = Vec::new();
    for (_, block) in blocks.iter().filter(|(kind, _)| *kind == 1) {
        // The options: if_name is 2 (pcapng, section 4.2).
        assert_eq!(u16::from_le_bytes([block[16], block[17]]), 2);
        let size = usize::from(u16::from_le_bytes([block[18], block[19]]));
        names.push(String::from_utf8(block[20..20 + size].to_vec()).unwrap());
    }
    assert_eq!(
        names,
        ["ecu to br1 port 0", "br1 port 0 to ecu", "store to br1 port 1", "br1 port 1 to store"]
    );
}

#[test]
fn without_ethernet_there_is_nothing_to_capture() {
    let config = Config::nvme_tsn_direct(mixed(1));
    let folder = tempfile::tempdir().unwrap();
    let files = OutputFiles {
        pcapng: Some(Target::File(folder.path().join("x.pcapng"))),
        ..OutputFiles::default()
    };
    let failure =
        Outputs::begin(&config, &files, Assumptions::default(), &str::to_owned).err().unwrap();
    assert!(failure.0.contains("no Ethernet"), "{failure}");
}
