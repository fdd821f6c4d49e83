//! `farlane tsn import`.

use crate::commands::Outcome;
use crate::output::warning;
use devices::import::{File, Kind, Target, import};
use report::Failure;
use report::target;
use std::fs;
use std::str::FromStr;

/// Read the configuration of a running node into a part of a plan
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane tsn import left.json --bridge left --output left.toml\n  \
    farlane tsn import qdiscs.json eth1=filters.json vlans.json --bridge left --interface eth1=right\n\n\
    FILE is YANG instance data, or the output of `tc -j qdisc show`, `tc -j filter show dev\n\
    INTERFACE ingress`, `ethtool --json --show-mm INTERFACE` or `bridge -j vlan show`. The plan\n\
    takes the result by include = \"left.toml\". What has no key is a warning.")]
pub struct Args {
    /// File; with the interface if its text does not name it. Files of one node are read together
    #[arg(value_name = "[INTERFACE=]FILE", required = true)]
    files: Vec<FileArg>,
    #[command(flatten)]
    node: NodeArgs,
    /// Neighbour at an interface; repeatable. Without it, interfaces have the names of neighbours
    #[arg(long, value_name = "INTERFACE=PEER")]
    interface: Vec<Pair>,
    /// File to write. FILE - is standard output
    #[arg(long, value_name = "FILE", default_value = "-")]
    output: target::Target,
}

/// The table of the node: one of these options.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
struct NodeArgs {
    /// Name of the bridge in the plan
    #[arg(long, value_name = "NAME")]
    bridge: Option<String>,
    /// Name of the node in the plan
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Name of the host in the plan
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
}

#[derive(Clone, Debug)]
struct FileArg {
    interface: Option<String>,
    name: String,
}

impl FromStr for FileArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (interface, name) = match text.split_once('=') {
            Some((interface, name)) => (Some(interface.to_owned()), name),
            None => (None, text),
        };
        Ok(Self { interface, name: name.to_owned() })
    }
}

#[derive(Clone, Debug)]
struct Pair(String, String);

impl FromStr for Pair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let pair = text.split_once('=').ok_or("expected INTERFACE=PEER")?;
        Ok(Self(pair.0.to_owned(), pair.1.to_owned()))
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let NodeArgs { bridge, node, host } = &args.node;
    let names = [(Kind::Bridge, bridge), (Kind::Station, node), (Kind::Host, host)];
    let (kind, name) = names
        .into_iter()
        .find_map(|(kind, name)| Some((kind, name.clone()?)))
        .expect("clap requires one");
    let peers = args.interface.iter().map(|Pair(own, peer)| (own.clone(), peer.clone())).collect();
    let read = |FileArg { interface, name }: &FileArg| {
        let text = fs::read_to_string(name);
        let text = text.map_err(|error| Failure(format!("{name}: {error}")))?;
        Ok(File { name: name.clone(), interface: interface.clone(), text })
    };
    let files = args.files.iter().map(read).collect::<Result<Vec<_>, Failure>>()?;
    let imported = import(&Target { kind, name, peers }, &files).map_err(Failure)?;
    imported.warnings.iter().for_each(|text| warning(format_args!("{text}")));
    args.output.write(&imported.text)?;
    Ok(())
}
