//! Programs on a host: hot resets reach the components below, and interrupt wires reach software.
//! Also packets with an ECRC.

use crate::simulation::worlds::*;
use pcie::Bus;
use wire::tlp::Tlp;

const ROOT_PORT: Bdf = Bdf::new(0, 1, 0);
const COMMAND: u16 = 0x04;
const INTX_DISABLE: u32 = 1 << 10;
const BUS_NUMBERS: u16 = 0x18;
const BRIDGE_CONTROL: u16 = 0x3e;
const SECONDARY_BUS_RESET: u32 = 1 << 6;

/// A host whose workload reads configuration space for a second.
fn slow(like: fn(Workload) -> Config) -> World {
    let gap = Duration::from_ms(100);
    let mut world = World::new(&like(Workload::ConfigReads { count: 10, gap })).expect("valid");
    run_to(&mut world, |host| host.latency.count() > 0);
    world
}

/// Resets the bus of the root port and writes the bus numbers of bridges (`buses`) again. Returns
/// the drive's command register before and after the reset.
fn around_a_reset(mut world: World, drive: Bdf, buses: &'static [(Bdf, u32)]) -> [u32; 2] {
    let program = move |bus: Bus| async move {
        let before = bus.config_read(drive, COMMAND, 2).await;
        bus.config_write(ROOT_PORT, BRIDGE_CONTROL, 2, SECONDARY_BUS_RESET).await;
        bus.sleep(Duration::from_ms(2)).await;
        bus.config_write(ROOT_PORT, BRIDGE_CONTROL, 2, 0).await;
        for (bridge, buses) in buses {
            bus.config_write(*bridge, BUS_NUMBERS, 4, *buses).await;
        }
        [before, bus.config_read(drive, COMMAND, 2).await]
    };
    run_program(&mut world, program).0
}

#[test]
fn a_hot_reset_reaches_the_drive_below_the_root_port_and_behind_the_network() {
    const BUSES: &[(Bdf, u32)] =
        &[(Bdf::new(1, 0, 0), 0x03_02_01), (Bdf::new(2, 0, 0), 0x03_03_02)];
    let tcp = |workload| Config::nvme_tsn_tcp(workload, Rate::G1);
    for (world, bus, buses) in [(slow(Config::nvme_tsn_direct), 1, &[][..]), (slow(tcp), 3, BUSES)]
    {
        let [before, after] = around_a_reset(world, Bdf::new(bus, 0, 0), buses);
        assert_eq!((before & 6, after), (6, 0), "memory and bus master, enabled by nobody since");
    }
}

/// A drive without MSI-X signals INTA, and the workload continues.
#[test]
fn interrupt_wires_reach_software() {
    let drive = Bdf::new(1, 0, 0);
    for depth in [1, 8] {
        let plan = Config::nvme_tsn_direct(Workload::Fio(fio(Rw::RandRw, 4096, depth)));
        let usual = run(&plan).hosts[0].commands;
        let mut world = World::new(&plan).expect("a valid plan");
        run_to(&mut world, |host| host.commands > 0);
        let ((), report) = run_program(&mut world, move |bus| async move {
            // The capability ID of MSI-X is 0x11.
            let mut at = bus.config_read(drive, 0x34, 1).await as u16;
            while bus.config_read(drive, at, 1).await != 0x11 {
                at = bus.config_read(drive, at + 1, 1).await as u16;
            }
            bus.config_write(drive, at + 2, 2, 0).await;
            let command = bus.config_read(drive, COMMAND, 2).await;
            bus.config_write(drive, COMMAND, 2, command & !INTX_DISABLE).await;
        });
        check(&report);
        assert_eq!(report.hosts[0].commands, usual);
        check_errors(&world);
    }
}

/// The number of packets at the root port without an ECRC, and with an ECRC.
#[derive(Clone, Default)]
struct Guarded(Rc<Cell<[u64; 2]>>);

impl Observer for Guarded {
    fn tlp(&mut self, _: Instant, point: Point, _: bool, tlp: &Tlp) {
        let mut seen = self.0.get();
        if matches!(point, Point::RootPort(_)) {
            seen[usize::from(tlp.digest)] += 1;
        }
        self.0.set(seen);
    }
}

#[test]
fn a_host_that_wants_it_has_an_ecrc_on_every_packet() {
    for like in [Config::nvme_tsn_direct, |workload| Config::nvme_tsn_tcp(workload, Rate::G1)] {
        let [plain, guarded] = [false, true].map(|ecrc| {
            let mut plan = like(Workload::Fio(fio(Rw::Read, 4096, 1)));
            plan.hosts[0].root.ecrc = ecrc;
            let mut world = World::new(&plan).expect("a valid plan");
            run_to(&mut world, |host| host.commands > 0);
            let seen = Guarded::default();
            world.observe(Box::new(seen.clone()));
            let report = world.run().expect("it ends");
            check(&report);
            check_errors(&world);
            assert_eq!(seen.0.get()[usize::from(!ecrc)], 0, "{ecrc}");
            assert!(seen.0.get()[usize::from(ecrc)] > 100);
            report.links.iter().find(|link| link.name.ends_with("root port up")).unwrap().load
        });
        assert_eq!(guarded.packets, plain.packets);
        assert_eq!(guarded.bytes - plain.bytes, 4 * plain.packets);
    }
}
