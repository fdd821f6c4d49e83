//! The NVMe/TSN paper's tables (section 4.4), published and simulated.

use super::{Experiment, Published, RATE, Topology, mean, ns, us};
use crate::{Figure, Lab, Runs, Section, Simulation, error_percent, percent};
use report::Align::{Left, Right};
use report::{Failure, Table};
use sim::Config;
use wire::Duration;

/// The eleven figures.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Figures in the order of the sections.
    pub rows: Vec<Figure>,
}

const T_TUNNEL_NOTE: &str = "half of what the configuration read takes longer than direct";

/// Returns whether the figure calibrated a parameter, and a remark: the calibrated parameter, or
/// what is not explained.
fn note(experiment: Experiment, topology: Topology) -> (bool, &'static str) {
    use Experiment::{ConfigRead, Read, Write};
    use Topology::{Direct, Tcp, Tsn};
    match (experiment, topology) {
        (ConfigRead, Direct) => (true, "chose the pipelines of the drive's port"),
        (ConfigRead, Tcp) => (true, "chose the pipelines of the TCP nodes"),
        (ConfigRead, Tsn) => (true, "chose the pipelines of the TSN nodes"),
        (Read, Direct) => {
            (true, "shares with the direct write the time from interrupt to doorbell")
        }
        (Read, Tcp) => (false, "predicted"),
        (Read, Tsn) => (false, "predicted; not explained: see what would explain it"),
        (Write, Direct) => (true, "chose the time from interrupt to doorbell"),
        (Write, Tcp | Tsn) => (false, "predicted, with 2 DMA reads in flight"),
    }
}

/// Returns the simulations of the nine experiments. Each has the name of its row in [`Tables::rows`].
fn simulations() -> Vec<(String, Config)> {
    let name = |experiment| match experiment {
        Experiment::ConfigRead => "config_read",
        Experiment::Read => "read_4k",
        Experiment::Write => "write_4k",
    };
    let of_experiment = |experiment: Experiment| {
        Topology::ALL.map(|topology| {
            let config = topology.config(experiment.workload(), RATE);
            (format!("{}_{}", name(experiment), topology.name()), config)
        })
    };
    Experiment::ALL.into_iter().flat_map(of_experiment).collect()
}

/// Runs the nine experiments in a laboratory.
///
/// # Errors
/// If a simulation fails.
pub fn tables(published: &Published, lab: Lab) -> Result<Tables, Failure> {
    let mut runs = Runs::default();
    for (name, config) in simulations() {
        let tunnels: &[&str] = match &name[..] {
            "config_read_direct" => &["t_tunnel_tcp", "t_tunnel_tsn"],
            "config_read_tcp" => &["t_tunnel_tcp"],
            "config_read_tsn" => &["t_tunnel_tsn"],
            _ => &[],
        };
        let rows = [&[&name[..]], tunnels].concat().into_iter().map(str::to_owned).collect();
        runs.add(name.clone(), lab(Simulation { name, rows, config })?);
    }
    let reports = runs.run()?;
    let means: Vec<Duration> = Experiment::ALL
        .into_iter()
        .zip(reports.chunks(Topology::ALL.len()))
        .flat_map(|(experiment, reports)| {
            reports.iter().map(move |run| mean(experiment.samples(run)))
        })
        .collect();
    Ok(Tables { rows: rows(published, &means) })
}

fn rows(published: &Published, means: &[Duration]) -> Vec<Figure> {
    let mut rows = Vec::new();
    let (reads, commands) = means.split_at(Topology::ALL.len());
    for (topology, read) in Topology::ALL.into_iter().zip(reads) {
        let figures = (published.config_read_ns.at(topology).average as f64, ns(*read) as f64);
        let name = format!("config_read_{}", topology.name());
        rows.push(Figure::new((name, "ns"), figures, note(Experiment::ConfigRead, topology)));
    }
    let tunnel = [
        (Topology::Tcp, reads[1], published.t_tunnel_ns.tcp),
        (Topology::Tsn, reads[2], published.t_tunnel_ns.tsn),
    ];
    for (topology, read, figure) in tunnel {
        let half = Duration::from_ps((read - reads[0]).as_ps() / 2);
        let name = format!("t_tunnel_{}", topology.name());
        rows.push(Figure::new(
            (name, "ns"),
            (figure as f64, ns(half) as f64),
            (true, T_TUNNEL_NOTE),
        ));
    }
    let figures = [
        (Experiment::Read, "read_4k", &published.read_4k_us),
        (Experiment::Write, "write_4k", &published.write_4k_us),
    ];
    for ((experiment, name, figure), means) in figures.into_iter().zip(commands.chunks(3)) {
        for (topology, time) in Topology::ALL.into_iter().zip(means) {
            let name = format!("{name}_{}", topology.name());
            let figures = (*figure.at(topology), us(*time));
            rows.push(Figure::new((name, "us"), figures, note(experiment, topology)));
        }
    }
    rows
}

/// Returns an empty table with a column per topology.
fn empty() -> Table {
    let columns = ["direct", "TCP", "TSN"]
        .map(|topology| [(topology, Right), ("simulated", Right), ("error", Right), ("", Right)]);
    Table::new(&[&[("measurement", Left)], columns.as_flattened()].concat())
}

impl Tables {
    /// Returns the figures in the layout of the NVMe/TSN paper's tables.
    pub fn section(&self, published: &Published) -> Section {
        let title = "Published and simulated, in the tables of the NVMe/TSN paper (section 4.4)";
        let notes = [
            "c: calibrated, a parameter was chosen by it; everything else is predicted. Simulated \
             configuration reads are the mean of five, commands that of 100, one at a time; \
             published commands are single samples.",
            "The paper's table leaves out the first sample of direct (264 ns), and not all of its \
             cells are those of section 4.1. Its table rounds the commands to microseconds; here \
             they stand as in sections 4.2 and 4.3.",
            "The read over TSN is not explained by the latency of the tunnel; see below for what \
             would explain it. No parameter was chosen by a tunnelled read or write.",
        ];
        Section {
            title: title.to_owned(),
            tables: vec![
                ("Configuration reads, ns".to_owned(), self.config_reads(published)),
                ("Application level, us".to_owned(), self.commands()),
            ],
            notes: notes.map(str::to_owned).into(),
            plots: Vec::new(),
        }
    }

    fn config_reads(&self, published: &Published) -> Table {
        let mut grid = empty();
        let table = &published.table_of_config_reads_ns;
        let simulated = |topology: Topology| {
            Figure::find(&self.rows, &format!("config_read_{}", topology.name()))
        };
        for number in 0..table.at(Topology::Direct).len() {
            let mut cells = vec![(number + 1).to_string()];
            for topology in Topology::ALL {
                let (sample, row) = (table.at(topology)[number] as f64, simulated(topology));
                let error = percent(error_percent(sample, row.simulated));
                cells.extend([sample.to_string(), row.simulated.to_string(), error, "c".into()]);
            }
            grid.row(cells);
        }
        let mut cells = vec!["average (4.1)".to_owned()];
        cells.extend(Topology::ALL.into_iter().flat_map(|topology| four(simulated(topology))));
        grid.row(cells);
        let mut cells = vec!["T_tunnel (4.1)".to_owned()];
        cells.extend(["-", "-", "-", ""].map(str::to_owned));
        let tunnels = ["t_tunnel_tcp", "t_tunnel_tsn"];
        cells.extend(tunnels.into_iter().flat_map(|name| four(Figure::find(&self.rows, name))));
        grid.row(cells);
        grid
    }

    fn commands(&self) -> Table {
        let mut grid = empty();
        for (name, figure) in [("4 KiB NVMe Read", "read_4k"), ("4 KiB NVMe Write", "write_4k")] {
            let mut cells = vec![name.to_owned()];
            for topology in Topology::ALL {
                cells.extend(four(Figure::find(
                    &self.rows,
                    &format!("{figure}_{}", topology.name()),
                )));
            }
            grid.row(cells);
        }
        grid
    }
}

/// Returns published figure, simulated figure, error, and mark.
fn four(row: &Figure) -> [String; 4] {
    let value = |value: f64| match row.unit {
        "ns" => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    };
    let mark = if row.calibrated { "c" } else { "" };
    [value(row.published), value(row.simulated), percent(row.error_percent), mark.to_owned()]
}
