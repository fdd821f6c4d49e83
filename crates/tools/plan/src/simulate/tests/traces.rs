//! Trace files of simulations, read as traces of live nodes are.

use super::{Records, gated, mixed, run, tcp};
use crate::simulate::trace::TraceFiles;
use crate::simulate::{Observers, Shared};
use analysis::commands::{Command, Event};
use analysis::trace::{Anomalies, Finding, Run, by_stage, chart, path, perfetto};
use node::push::Mode;
use sim::Config;
use sim::ethernet::Rate;
use sim::measure::{CommandRecord, Observer, Op};
use sim::workload::{Fio, Rw, Workload};
use sim::world::Report;
use tempfile::TempDir;
use wire::{Duration, Instant};

struct Traced {
    _folder: TempDir,
    report: Report,
    records: Vec<CommandRecord>,
    run: Run,
    /// Commands on I/O queues.
    commands: Vec<Command>,
    anomalies: Anomalies,
}

fn traced(config: &Config) -> Traced {
    let folder = tempfile::tempdir().unwrap();
    let files = Shared::new(TraceFiles::create(config, &folder.path().join("run.trace")).unwrap());
    let records = Shared::new(Records::default());
    let both: Vec<Box<dyn Observer>> = vec![Box::new(files.clone()), Box::new(records.clone())];
    let report = run(config, Box::new(Observers(both)));
    assert_eq!(files.0.borrow_mut().finish().unwrap(), 0, "records in the order of time");
    let paths = files.0.borrow().paths(0);
    let run = Run::open(&paths).unwrap();
    let (mut commands, mut anomalies) = (Vec::new(), Anomalies::default());
    run.analyse(|found, _| {
        anomalies.observe(&found);
        if let Finding::Event(Event::Command(command)) = found
            && !command.is_admin()
        {
            commands.push(*command);
        }
    })
    .unwrap();
    anomalies.finish(&run);
    let records = std::mem::take(&mut records.0.borrow_mut().0);
    Traced { _folder: folder, report, records, run, commands, anomalies }
}

/// Checks that each command record of the simulation has a command in the trace, in the same order
/// of ends and with the same time.
fn agrees(traced: &Traced) {
    let Traced { records, commands, .. } = traced;
    assert!(records.len() >= 64);
    // Commands still in flight when the workload ended are left out.
    let ended: Vec<&Command> = commands.iter().filter(|c| c.end.is_some()).collect();
    assert!(records.len() - ended.len() <= 1, "{} of {}", ended.len(), records.len());
    let ns = |at: Instant| at.as_ns();
    for command in &ended {
        let fits = |record: &&CommandRecord| {
            record.queue == command.queue
                && record.id == command.entry.cid
                && command.slba() == Some(record.offset / 512)
                && command.transfer.bytes() == record.length
                && (ns(record.since)..=ns(record.until)).contains(&ns(command.start))
        };
        let found: Vec<&CommandRecord> = records.iter().filter(fits).collect();
        assert_eq!(found.len(), 1, "{command:?}");
        assert_eq!(found[0].op == Op::Write, command.entry.opcode == 1);
        assert!(command.status.unwrap().is_success());
    }
}

/// Returns by how many nanoseconds each command takes longer in the report than in the trace. The
/// trace ends at the start of the head doorbell, the report at its acknowledgement.
fn report_exceeds_trace(Traced { report, commands, .. }: &Traced) -> u64 {
    let times: Vec<u64> = commands.iter().filter_map(|c| c.duration_ns()).collect();
    let host = &report.hosts[0].root_port;
    assert_eq!(times.len() as u64, host.count());
    let more = host.summary().min_ns - times.iter().min().unwrap();
    let traced_ns: u64 = times.iter().map(|ns| ns + more).sum();
    let reported_ns = (host.sum_ps() / 1000) as u64;
    assert!(
        traced_ns.abs_diff(reported_ns) <= 2 * host.count(),
        "{traced_ns} {reported_ns}: rounded each"
    );
    assert!(host.summary().max_ns.abs_diff(times.iter().max().unwrap() + more) <= 1);
    more
}

/// The report includes the reads of host memory for a push, the trace begins after them.
#[test]
fn pushed_commands_with_pauses_take_as_long_in_the_trace_as_in_the_report() {
    for (rw, memory_reads) in [(Rw::RandRead, 1), (Rw::RandWrite, 2)] {
        let thinktime = Duration::from_ms(1);
        let work = Fio { number_ios: Some(20), thinktime, ..Fio::new(rw, 4096, 1) };
        let config = |push| {
            let mut config = Config::nvme_tsn_tcp(Workload::Fio(work.clone()), Rate::G10);
            config.hosts[0].root.push = push;
            config
        };
        let [plain, pushed] =
            [Mode::Off, Mode::All].map(|mode| report_exceeds_trace(&traced(&config(mode))));
        let memory = config(Mode::All).hosts[0].root.memory_read.as_ns();
        assert_eq!(pushed - plain, memory_reads * memory, "{rw:?}");
    }
}

#[test]
fn trace_of_nvme_tsn_over_tcp_can_be_read_again() {
    let traced = traced(&tcp(1));
    agrees(&traced);
    let Traced { run, commands, anomalies, .. } = &traced;
    let ack = report_exceeds_trace(&traced);
    assert!((10..100).contains(&ack), "{ack} ns");
    // With one clock the times of TLPs between the nodes are exact, and their sum too.
    assert_eq!(run.nodes.len(), 2);
    assert_eq!(run.uncertainty_ns(1), 0);
    for command in commands {
        let stages = by_stage(&path(run, command));
        assert_eq!(stages.iter().map(|(_, ns)| ns).sum::<u64>(), command.duration_ns().unwrap());
    }
    assert!(anomalies.unexplained.is_empty(), "{:?}", anomalies.unexplained.keys());
}

#[test]
fn all_trace_views_read_simulated_traces() {
    let traced = traced(&tcp(1));
    let svg = chart::chart(&traced.run, traced.commands.last().unwrap());
    assert!(svg.contains("frame of the tunnel") && !svg.contains("not observed"), "{svg}");
    assert!(!svg.contains("Clocks of the nodes"), "there is nothing to bring together");
    let mut out = Vec::new();
    let mut events = perfetto::Writer::new(&mut out).unwrap();
    let command = &traced.commands[0];
    events.add(1, command, &path(&traced.run, command), None);
    events.finish().unwrap();
    assert!(String::from_utf8(out).unwrap().contains("network"));
}

#[test]
fn records_behind_closed_gates_are_written_in_time_order() {
    // Data wait for 5 ms, much longer than records are held back to be sorted.
    let config = gated(mixed(8), Duration::from_us(200), Duration::from_ms(5));
    agrees(&traced(&config));
}

#[test]
fn a_drive_at_the_root_port_has_one_file() {
    let traced = traced(&Config::nvme_tsn_direct(mixed(4)));
    agrees(&traced);
    assert_eq!(traced.run.nodes.len(), 1);
}

#[test]
fn hosts_and_devices_have_files_of_their_own() {
    let mut config = tcp(2);
    let other = config.hosts[0].clone();
    config.hosts.push(other);
    let folder = tempfile::tempdir().unwrap();
    let files = TraceFiles::create(&config, &folder.path().join("run.trace")).unwrap();
    let names = |host| {
        let paths = files.paths(host).into_iter();
        paths.map(|p| p.file_name().unwrap().to_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(0), ["run.trace", "run.trace.device0"]);
    assert_eq!(names(1), ["run.trace.host1", "run.trace.host1.device0"]);
    let (files, paths) = (Shared::new(files), [0, 1]);
    run(&config, Box::new(files.clone()));
    files.0.borrow_mut().finish().unwrap();
    for host in paths {
        let run = Run::open(&files.0.borrow().paths(host)).unwrap();
        assert_eq!(run.nodes.len(), 2);
    }
}
