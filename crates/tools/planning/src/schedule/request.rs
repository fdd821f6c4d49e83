//! A search for lists, as a document and a plan.

use super::document::ScheduleReport;
use super::help::Help;
use super::{Deadlines, Limits, Search, help, periodic, verify, windows};
use plan::{Plan, Planned};
use wire::Duration;

/// The share of the time in which lists for the plan as it is are searched for.
const SEARCH: f64 = 0.75;

/// What to search for, and how long.
pub struct Request<'a> {
    /// Deadlines of commands. Without one, each frame of a periodic stream with a deadline has a
    /// window.
    pub deadlines: Deadlines,
    /// The share of the time of the search that is over; 1 or more ends it.
    pub used: &'a dyn Fn() -> f64,
    /// Times of lists are multiples of this.
    pub grain: Duration,
    /// Maximum entries of a list.
    pub entries: usize,
    /// Largest difference of two clocks; only without deadlines of commands.
    pub clock_error: Duration,
    /// Simulations that verify lists for commands, each with other starts.
    pub trials: u64,
    /// Whether to make the plan with the lists.
    pub with_plan: bool,
}

impl<'a> Request<'a> {
    /// A search without deadlines of commands, with the other defaults of `farlane tsn schedule`.
    pub fn new(used: &'a dyn Fn() -> f64) -> Self {
        Self {
            deadlines: Deadlines::default(),
            used,
            grain: Duration::from_us(1),
            entries: 4096,
            clock_error: Duration::ZERO,
            trials: 8,
            with_plan: false,
        }
    }

    /// Searches. Returns the document, and the plan with the lists and the starts of streams.
    ///
    /// # Errors
    /// Why there is no schedule.
    pub fn run(
        &self,
        name: String,
        plan: &Plan,
        planned: &Planned,
    ) -> Result<(ScheduleReport, Option<Plan>), String> {
        // The rest of the time is for changes of the plan that would help.
        let is_over = || (self.used)() >= SEARCH;
        let limits = Limits { is_over: &is_over, grain: self.grain, entries: self.entries };
        if self.deadlines == Deadlines::default() {
            let options = periodic::Options { limits, margin: self.clock_error, seed: 1 };
            let mut found = periodic::schedule(name.clone(), plan, planned, &options)?;
            if !found.0.feasible {
                found.0.help = self.help_streams(plan, &options);
            }
            return Ok(found);
        }
        self.for_commands(name, (plan, planned), &limits)
    }

    /// The rates with which each frame has a window.
    fn help_streams(&self, plan: &Plan, options: &periodic::Options<'_>) -> Vec<Help> {
        let is_over = || (self.used)() >= 1.0;
        let limits = Limits { is_over: &is_over, ..options.limits };
        let options = periodic::Options { limits, ..*options };
        help::helpful(help::rates(), plan, &limits, |plan, planned| {
            let found = periodic::schedule(String::new(), plan, planned, &options);
            found.is_ok_and(|(report, _)| report.feasible)
        })
    }

    fn for_commands(
        &self,
        name: String,
        (plan, planned): (&Plan, &Planned),
        limits: &Limits<'_>,
    ) -> Result<(ScheduleReport, Option<Plan>), String> {
        if planned.hosts.is_empty() {
            return Err("the plan has no host, so no command has a deadline".to_owned());
        }
        let possible = |why: String| why + &help::to_begin((plan, planned), self.deadlines);
        let search = Search::new(planned, self.deadlines).map_err(possible)?;
        let before = search.before();
        let found = search.run(limits)?;
        let help = match found.missed.is_empty() {
            true => Vec::new(),
            false => {
                let is_over = || (self.used)() >= 1.0;
                let limits = Limits { is_over: &is_over, ..*limits };
                help::for_commands((plan, planned), self.deadlines, &limits)
            }
        };
        let after = windows::apply(planned, &found.lists);
        let scheduled = self.with_plan.then(|| plan.with_schedule(planned, &after, &[]));
        let scheduled = scheduled.transpose().map_err(|error| error.to_string())?;
        let longest = |planned| verify::longest(planned, self.trials);
        let (_, required) = verify::simulated(&after)?;
        let [simulated, after] = [planned, &after].map(longest);
        let (before, after) = ((&before, &simulated?), (&found, &after?));
        let mut report = ScheduleReport::new(name, planned, before, after, help);
        report.require(required);
        Ok((report, scheduled.map(|(plan, _)| plan)))
    }
}
