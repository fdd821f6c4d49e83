//! Stations with a processor, and farlane's own machine.

use super::{READS, built, fails};
use sim::pcie::Generation;
use sim::processor::ProcessorConfig;
use sim::workload::CompletionMode;
use sim::world::Attached;
use wire::Duration;

#[test]
fn costs_reach_the_stations_with_a_processor() {
    let text = format!(
        "{READS}[link]\ncopy_rate = \"2GB/s\"\nwake_time = \"5us\"\ntlp_time = \"300ns\"\n\
         packet_time = \"20ns\"\n[nodes.n]\nprocessor = \"serial\"\nframe_time = \"1us\"\n"
    );
    let stations = built(&text).config.network.stations;
    let expected = ProcessorConfig {
        copy: 500,
        frame: Duration::from_us(1),
        wake: Duration::from_us(5),
        tlp: Duration::from_ns(300),
        packet: Duration::from_ns(20),
    };
    assert_eq!([stations[0].processor, stations[1].processor], [None, Some(expected)]);
}

#[test]
fn cost_without_processor_is_an_error() {
    fails(
        &format!("{READS}[link]\ntlp_time = \"1us\"\n"),
        "p.toml:4:12: 'tlp_time' applies only to processor = \"serial\"",
    );
    fails(
        &format!(
            "{READS}[link]\nprocessor = \"serial\"\n[nodes.n]\nprocessor = \"none\"\n\
             copy_rate = \"1GB/s\"\n"
        ),
        "p.toml:7:13: 'copy_rate' applies only to processor = \"serial\"",
    );
}

/// The defaults of the machine are behind all keys of the plan.
#[test]
fn machine_sets_defaults_of_host_links_and_drive() {
    let config = built(&format!("machine = \"farlane\"\n{READS}[host]\nsubmit = \"2us\"\n")).config;
    let host = &config.hosts[0];
    let (root, software) = (&host.root, &host.software);
    assert_eq!([root.mmio, root.memory_read, software.complete], [Duration::ZERO; 3]);
    assert_eq!(software.submit, Duration::from_us(2));
    assert_eq!(software.completions, CompletionMode::Interrupt { latency: Duration::ZERO });
    assert_eq!((host.link.generation, host.link.width), (Generation::Gen5, 16));
    assert_eq!((root.max_payload, software.max_read_request), (512, 4096));
    let Attached::Switch(switch) = &host.attached else { panic!("a switch") };
    let drive = &switch.ports[0].drive;
    assert_eq!((drive.read_request, drive.reads_in_flight), (4096, 32));
    assert_eq!(drive.timing.firmware_read, Duration::ZERO);
    let paper = built(&format!("machine = \"nvme-tsn\"\n{READS}")).config;
    assert_eq!(paper.hosts[0].root, built(READS).config.hosts[0].root);
}
