//! `farlane tsn bound FILE.json`: bounds of networks of servers.

use crate::commands::json;
use crate::output::{note, wrong_usage};
use calculus::format::{NetworkFile, Unit, parse};
use calculus::{Bound, Bounds, Method, Outputs, Rational, bounds};
use clap::ValueEnum;
use report::Align::{Left, Right};
use report::{Failure, Outcome, Table};
use schemars::JsonSchema;
use serde::Serialize;

/// Options of methods.
#[derive(clap::Args, Debug)]
pub struct Options {
    /// Method: for a plan tfa, sfa, plp or best; for a network in FILE.json any but best [default:
    /// best; all that know the multiplexing of the file]
    #[arg(long, value_name = "METHOD", value_enum)]
    method: Option<MethodName>,
    /// What leaves a server of FILE.json, for tfa, sfa and pmoo: streams that leave together, as in
    /// DNC, or each flow alone, as in xTFA and panco [default: aggregate; with cycles flow]
    #[arg(long, value_name = "KIND", value_enum)]
    outputs: Option<OutputsName>,
}

impl Options {
    /// The method for a plan. Ends the process if an option is for networks in JSON.
    pub(super) fn for_plan(&self) -> planning::bound::Method {
        use planning::bound::Method;
        if self.outputs.is_some() {
            wrong_usage::<()>("--outputs applies only to a network in FILE.json");
        }
        match self.method {
            None | Some(MethodName::Best) => Method::Best,
            Some(MethodName::Tfa) => Method::Tfa,
            Some(MethodName::Sfa) => Method::Sfa,
            Some(MethodName::Plp) => Method::Plp,
            Some(MethodName::Pmoo | MethodName::Elp | MethodName::All) => {
                wrong_usage("the methods of a plan are tfa, sfa, plp and best")
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodName {
    Tfa,
    Sfa,
    Pmoo,
    Plp,
    Elp,
    All,
    Best,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OutputsName {
    Aggregate,
    Flow,
}

/// Bounds of a network of servers (docs/tsn-planning.md).
#[derive(JsonSchema, Serialize)]
pub struct NetworkBounds {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// Path of the network, as given.
    file: String,
    /// Unit of exact delays.
    time_unit: String,
    /// Unit of exact backlogs.
    data_unit: String,
    /// Results of each method.
    methods: Vec<MethodBounds>,
}

/// Results of one method.
#[derive(JsonSchema, Serialize)]
struct MethodBounds {
    /// `tfa`, `sfa`, `pmoo`, `plp` or `elp`.
    name: &'static str,
    /// Why the method has no results; null if it has some.
    why: Option<String>,
    /// One entry per path of a flow.
    flows: Vec<FlowBounds>,
    /// One entry per server.
    servers: Vec<ServerBounds>,
}

/// Bounds of one path of a flow.
#[derive(JsonSchema, Serialize)]
struct FlowBounds {
    /// Name of the flow.
    name: String,
    /// Name of the path; null without one.
    path_name: Option<String>,
    /// Names of the servers.
    path: Vec<String>,
    /// Largest delay end to end; null if there is none.
    delay: Option<Delay>,
    /// Largest delay in each server. The sum may be above `delay`.
    hops: Vec<Option<Delay>>,
}

/// Bounds of one server.
#[derive(JsonSchema, Serialize)]
struct ServerBounds {
    /// Name of the server.
    name: String,
    /// Largest delay; null if there is none.
    delay: Option<Delay>,
    /// Most data that wait; null if there is no bound.
    backlog: Option<Backlog>,
}

/// A delay.
#[derive(JsonSchema, Serialize)]
struct Delay {
    /// A fraction, in `time_unit`.
    exact: String,
    /// The same in nanoseconds, rounded.
    ns: f64,
}

/// An amount of data.
#[derive(JsonSchema, Serialize)]
struct Backlog {
    /// A fraction, in `data_unit`.
    exact: String,
    /// The same in bits, rounded.
    bits: f64,
}

/// Runs the command.
pub(super) fn run(name: &str, options: &Options, as_json: bool) -> Outcome {
    let failed = |why: &dyn std::fmt::Display| Failure(format!("{name}: {why}"));
    let text = std::fs::read_to_string(name).map_err(|error| failed(&error))?;
    let file = parse(&text).map_err(|error| failed(&error))?;
    let outputs = match options.outputs {
        None | Some(OutputsName::Aggregate) => Outputs::Aggregate,
        Some(OutputsName::Flow) => Outputs::Flow,
    };
    let mut methods = Vec::new();
    for method in chosen(options.method.unwrap_or(MethodName::All), &file) {
        let found = bounds(&file.network, method, outputs);
        methods.push(found.map_or_else(
            |error| MethodBounds::none(method, error.to_string()),
            |found| MethodBounds::new(&file, method, &found),
        ));
    }
    if let Some(why) = methods.iter().map(|it| it.why.as_ref()).collect::<Option<Vec<_>>>() {
        return Err(failed(why[0]));
    }
    if as_json {
        let document = NetworkBounds {
            schema: 1,
            file: name.to_owned(),
            time_unit: file.time.name,
            data_unit: file.data.name,
            methods,
        };
        println!("{}", json(&document));
    } else {
        print(&file, &methods);
        for why in methods.iter().filter_map(|method| method.why.as_ref()) {
            note(format_args!("{why}"));
        }
    }
    Ok(())
}

fn chosen(method: MethodName, file: &NetworkFile) -> Vec<Method> {
    let one = match method {
        MethodName::Tfa => Method::Tfa,
        MethodName::Sfa => Method::Sfa,
        MethodName::Pmoo => Method::Pmoo,
        MethodName::Plp => Method::Plp,
        MethodName::Elp => Method::Elp,
        MethodName::Best => wrong_usage("--method best applies only to a plan"),
        MethodName::All => {
            let multiplexing = file.network.multiplexing();
            return Method::ALL.into_iter().filter(|it| it.applies(multiplexing)).collect();
        }
    };
    vec![one]
}

fn print(file: &NetworkFile, methods: &[MethodBounds]) {
    let with: Vec<_> = methods.iter().filter(|method| method.why.is_none()).collect();
    let (time, data) = (&file.time, &file.data);
    let heading = |what: &str, unit: &Unit| format!("{what} {}", unit.name);
    let mut names: Vec<_> = with.iter().map(|method| heading(method.name, time)).collect();
    let mut columns = vec![("flow", Left), ("path", Left)];
    columns.extend(names.iter().map(|name| (name.as_str(), Right)));
    let mut table = Table::new(&columns);
    for (index, flow) in with[0].flows.iter().enumerate() {
        let mut row = vec![flow.name.clone(), flow.path.join(" > ")];
        let delays = with.iter().map(|method| method.flows[index].delay.as_ref());
        row.extend(delays.map(|delay| cell(delay.map(|it| &it.exact))));
        table.row(row);
    }
    print!("{}\n", table.text());

    names = with.iter().map(|it| heading(&format!("{} backlog", it.name), data)).collect();
    columns = vec![("server", Left)];
    columns.extend(names.iter().map(|name| (name.as_str(), Right)));
    let mut table = Table::new(&columns);
    for (index, server) in with[0].servers.iter().enumerate() {
        let mut row = vec![server.name.clone()];
        let backlogs = with.iter().map(|method| method.servers[index].backlog.as_ref());
        row.extend(backlogs.map(|backlog| cell(backlog.map(|it| &it.exact))));
        table.row(row);
    }
    print!("{}", table.text());
}

/// A fraction, unless it is long, and its decimal number.
fn cell(exact: Option<&String>) -> String {
    let Some(exact) = exact else { return "unbounded".to_owned() };
    let value: f64 = exact.parse::<Rational>().map_or(f64::NAN, |exact| calculus::to_f64(&exact));
    match exact.len() {
        _ if !exact.contains('/') => exact.clone(),
        0..=16 => format!("{exact} = {value:.3}"),
        _ => format!("{value:.3}"),
    }
}

impl MethodBounds {
    fn none(method: Method, why: String) -> Self {
        Self { name: method.name(), why: Some(why), flows: Vec::new(), servers: Vec::new() }
    }

    fn new(file: &NetworkFile, method: Method, bounds: &Bounds) -> Self {
        let names: Vec<_> = file.network.server_names().map(str::to_owned).collect();
        let delay = |bound: &Bound| {
            let seconds = bound.as_ref()?;
            let exact = (seconds / &file.time.size).to_string();
            Some(Delay { exact, ns: calculus::to_f64(seconds) * 1e9 })
        };
        let paths = file.flows.iter().zip(&file.path_names).flat_map(|(flow, names)| {
            flow.paths.iter().zip(names).map(move |(path, name)| (flow, path, name))
        });
        let flow = |((flow, path, name), bounds): ((&calculus::Flow, &Vec<usize>, &String), _)| {
            let bounds: &calculus::PathBounds = bounds;
            FlowBounds {
                name: flow.name.clone(),
                path_name: Some(name.clone()).filter(|name| !name.is_empty()),
                path: path.iter().map(|&server| names[server].clone()).collect(),
                delay: delay(&bounds.delay),
                hops: bounds.hops.iter().map(delay).collect(),
            }
        };
        let server = |(name, bounds): (&String, &calculus::ServerBounds)| ServerBounds {
            name: name.clone(),
            delay: delay(&bounds.delay),
            backlog: bounds.backlog.as_ref().map(|bits| Backlog {
                exact: (bits / &file.data.size).to_string(),
                bits: calculus::to_f64(bits),
            }),
        };
        Self {
            name: method.name(),
            why: None,
            flows: paths.zip(&bounds.paths).map(flow).collect(),
            servers: names.iter().zip(&bounds.servers).map(server).collect(),
        }
    }
}
