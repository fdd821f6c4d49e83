//! Several independent simulations at once, one per thread.

use super::Watch;
use super::document::SimReport;
use super::parts::RunTables;
use super::simulate::{Failed, RunOptions, RunProgress, simulate_plan};
use crate::Planned;
use sim::workload::Workload;
use std::borrow::Borrow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Outputs of simulations in addition to their documents.
#[derive(Clone, Copy, Default)]
pub struct Extras<'a> {
    /// Files of the first simulation.
    pub requested: Option<&'a RunOptions>,
    /// Tables of all simulations.
    pub tables: Option<&'a RunTables>,
    /// Number of the first simulation in tables.
    pub first: usize,
    /// Whether contention is observed.
    pub contention: bool,
    /// Whether one simulation follows the other, because the caller has a thread for each
    /// processor.
    pub one_by_one: bool,
}

/// Runs all simulations. Documents have the order of the plans. After a stop, plans that have not
/// begun have no result, except for the first one. The error is the first one in the order of the
/// plans, with its index.
pub fn run_all<P: Borrow<Planned> + Sync>(
    name: &str,
    plans: &[P],
    extras: &Extras<'_>,
    watch: &Watch<'_>,
) -> Result<Vec<Option<SimReport>>, (usize, Failed)> {
    let all = run_each(name, plans, extras, watch).into_iter().enumerate();
    all.map(|(at, document)| document.transpose().map_err(|failed| (at, failed))).collect()
}

/// Runs all simulations, also if some fail.
pub fn run_each<P: Borrow<Planned> + Sync>(
    name: &str,
    plans: &[P],
    extras: &Extras<'_>,
    watch: &Watch<'_>,
) -> Vec<Option<Result<SimReport, Failed>>> {
    let mut done: Vec<Option<Result<SimReport, Failed>>> = vec![None; plans.len()];
    let Extras { requested, tables, first, contention, one_by_one } = *extras;
    let is_stopped = watch.is_stopped;
    let threads = if one_by_one { 1 } else { usize::MAX };
    let paces: Vec<Arc<RunProgress>> = plans.iter().map(|_| Arc::default()).collect();
    let commands: Option<u64> = plans.iter().map(|plan| expected(plan.borrow())).sum();
    let work = |at: usize| {
        if at > 0 && is_stopped() {
            return None;
        }
        let plan = plans[at].borrow();
        let requested = requested.filter(|_| at == 0);
        let part = tables.map(|tables| tables.begin(first + at));
        let observed = (requested, contention);
        let result = simulate_plan(name, plan, &paces[at], observed, part, is_stopped);
        Some(result.map(|results| SimReport::new(name, plan, &results)))
    };
    in_parallel(threads, plans.len(), &work, |finished| {
        if let Some((at, document)) = finished {
            done[at] = Some(document);
        }
        // Also after each of many short simulations.
        (watch.progress)(Some(&state(&paces, commands, &done)));
    });
    (watch.progress)(None);
    done
}

/// Does `count` pieces of work on up to `threads` processors, until one returns `None`. Calls
/// `finished` for each result, and every 100 ms.
pub fn in_parallel<T: Send>(
    threads: usize,
    count: usize,
    work: &(dyn Fn(usize) -> Option<T> + Sync),
    mut finished: impl FnMut(Option<(usize, T)>),
) {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let (send, receive) = channel();
        for _ in 0..cores.min(threads).min(count) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(result) = (at < count).then(|| work(at)).flatten() else { break };
                    if send.send((at, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        loop {
            match receive.recv_timeout(Duration::from_millis(100)) {
                Ok(result) => finished(Some(result)),
                Err(RecvTimeoutError::Timeout) => finished(None),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
    });
}

/// Returns the number of commands of a plan, if the plan limits it.
fn expected(plan: &Planned) -> Option<u64> {
    let expected_of = |workload: &Workload| match workload {
        Workload::Fio(fio) if fio.runtime.is_some() => None,
        Workload::Fio(fio) => Some(fio.transfers()?.saturating_mul(fio.numjobs as u64)),
        Workload::Dd { count, .. } => Some(*count),
        Workload::Replay(replay) => Some(replay.operations.len() as u64),
        Workload::ConfigReads { .. } | Workload::Idle => None,
    };
    plan.config.hosts.iter().map(|host| expected_of(&host.workload)).sum()
}

fn state<T>(paces: &[Arc<RunProgress>], requested: Option<u64>, done: &[Option<T>]) -> String {
    let sum = |field: fn(&RunProgress) -> u64| paces.iter().map(|pace| field(pace)).sum::<u64>();
    let commands = sum(|pace| pace.commands.load(Ordering::Relaxed));
    let ns = sum(|pace| pace.ns.load(Ordering::Relaxed));
    let mut text = format!("{}.{:01} ms of virtual time", ns / 1_000_000, ns / 100_000 % 10);
    text += &match requested {
        Some(requested) if requested > 0 => {
            format!(", {} % of the commands", (commands * 100 / requested).min(100))
        }
        _ if commands > 0 => format!(", {commands} commands"),
        _ => String::new(),
    };
    if done.len() > 1 {
        let over = done.iter().flatten().count();
        text += &format!(", {over} of {} simulations done", done.len());
    }
    text
}
