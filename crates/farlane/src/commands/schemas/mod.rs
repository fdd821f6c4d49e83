//! Files in `docs/` that follow from the types: the JSON Schemas, the reference of the documents of
//! `--json`, and the help pages. `FARLANE_WRITE_SCHEMAS=1 cargo test -p farlane schemas` writes the
//! files.

mod help;
mod page;

use super::{bench, demo, drive, io, ping, tsn};
use observe::document::StatusDocument;
use plan::run::document;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// A document of `--json`.
struct Documented {
    /// Name of the file in `docs/schemas`, without its ending.
    file: &'static str,
    /// Heading of the section in `docs/json.md`.
    heading: &'static str,
    /// Text behind the description of the type.
    note: &'static str,
    schema: Value,
}

fn document<D: JsonSchema>(file: &'static str, heading: &'static str) -> Documented {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema: Schema = generator.into_root_schema_for::<D>();
    schema.insert("title".to_owned(), heading.replace('`', "").into());
    let mut schema = Value::from(schema);
    tidy(&mut schema);
    Documented { file, heading, note: "", schema }
}

/// [`document`] with a note.
fn noted<D: JsonSchema>(
    file: &'static str,
    heading: &'static str,
    note: &'static str,
) -> Documented {
    Documented { note, ..document::<D>(file, heading) }
}

/// Joins the lines of every description. Removes the type null from keys that are not required, and
/// keywords about reading.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(text)) = members.get_mut("description") {
                *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            }
            let required = members.get("required").cloned().unwrap_or_default();
            let is_required =
                |key: &str| required.as_array().is_some_and(|all| all.contains(&key.into()));
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                for property in properties.values_mut().filter_map(Value::as_object_mut) {
                    let _ = (property.remove("default"), property.remove("readOnly"));
                }
                let optional = properties.iter_mut().filter(|(key, _)| !is_required(key));
                optional.for_each(|(_, schema)| remove_null(schema));
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(elements) => elements.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn remove_null(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|name| name != "null");
        let only = types.pop().expect("another type");
        assert!(types.is_empty(), "several types: {types:?}");
        members.insert("type".to_owned(), only);
    }
    if let Some(Value::Array(mut choices)) = members.remove("anyOf") {
        choices.retain(|choice| choice["type"] != "null");
        let only = choices.pop().expect("another choice");
        assert!(choices.is_empty(), "several choices: {choices:?}");
        members.extend(only.as_object().cloned().expect("a schema"));
    }
}

/// All documents, in the order of the page.
fn documents() -> Vec<Documented> {
    vec![
        document::<demo::print::DemoDocument<'_>>("demo", "`farlane demo --json`"),
        document::<ping::PingDocument>("ping", "`farlane ping --json`"),
        document::<StatusDocument>("status", "`farlane status --json`"),
        document::<drive::show::DriveDocument>("drive-show", "`farlane drive show --json`"),
        document::<io::document::IoDocument>("io", "`farlane io --json`"),
        document::<latency_linux::Document>(
            "latency",
            "`farlane latency talk --json` and `listen --json`",
        ),
        document::<lab::LabDocument>("latency-lab", "`farlane latency lab --json`"),
        document::<bench::print::BenchDocument>("bench", "`farlane bench --json`"),
        document::<bench::ablation::print::AggregationDocument>(
            "bench-aggregation",
            "`farlane bench --aggregation … --json`",
        ),
        document::<bench::sim::SimBenchDocument>("bench-sim", "`farlane bench sim --json`"),
        document::<bench::congestion::CongestionDocument>(
            "bench-congestion",
            "`farlane bench congestion --json`",
        ),
        document::<bench::efficiency::print::EfficiencyDocument>(
            "bench-efficiency",
            "`farlane bench efficiency --json`",
        ),
        document::<plan::campaign::CampaignReport>("campaign", "`farlane campaign --json`"),
        document::<rig::CompareDocument>("compare", "`farlane compare --json`"),
        noted::<papers::Reproduction<papers::nvme_tsn::NvmeTsnResults, papers::Figure>>(
            "reproduce-nvme-tsn",
            "`farlane reproduce nvme-tsn --json`",
            "docs/experiments/nvme-tsn.md explains the figures.",
        ),
        noted::<papers::Reproduction<papers::expether::ExpetherResults, papers::Figure>>(
            "reproduce-expether",
            "`farlane reproduce expether --json`",
            "docs/experiments/expether.md explains the figures.",
        ),
        noted::<papers::Reproduction<papers::Checks, papers::tsn_ports::Check>>(
            "reproduce-tsn-ports",
            "`farlane reproduce tsn-ports --json`",
            "docs/experiments/tsn-ports.md explains the cases. The exit status is 1 if a figure is \
             not as expected.",
        ),
        noted::<papers::Reproduction<papers::Checks, papers::tsn_ports::Check>>(
            "reproduce-tsn-vm",
            "`farlane reproduce tsn-vm --json`",
            "The cases are statements of the article. docs/experiments/tsn-vm.md explains them. The \
             exit status is 1 if the model does not show a statement.",
        ),
        document::<analysis::trace_report::TraceDocument<'_>>("trace", "`farlane trace --json`"),
        document::<analysis::trace_report::against::ComparisonDocument<'_>>(
            "trace-against",
            "`farlane trace --against --json`",
        ),
        document::<planning::bound::document::BoundReport>(
            "tsn-bound",
            "`farlane tsn bound PLAN --json`",
        ),
        document::<tsn::network::NetworkBounds>(
            "tsn-bound-network",
            "`farlane tsn bound FILE.json --json`",
        ),
        document::<planning::schedule::document::ScheduleReport>(
            "tsn-schedule",
            "`farlane tsn schedule --json`",
        ),
        document::<planning::admit::AdmitReport>("tsn-admit", "`farlane tsn admit --json`"),
        document::<document::SimReport>("sim", "`farlane sim --json`"),
        document::<document::SweepDocument>("sim-sweep", "`farlane sim --sweep --json`"),
        document::<document::FailedRun>("sim-failed", "`farlane sim --json`, a plan that failed"),
    ]
}

/// Fails if the file at `path` differs from `text`. With `FARLANE_WRITE_SCHEMAS`, writes `text` to
/// the file instead.
fn keep(path: &Path, text: &str) {
    if std::env::var_os("FARLANE_WRITE_SCHEMAS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        std::fs::write(path, text).expect("writable");
        return;
    }
    let found = std::fs::read_to_string(path).unwrap_or_default();
    let path = path.display();
    assert!(
        found == text,
        "{path} differs from the types: run FARLANE_WRITE_SCHEMAS=1 cargo test -p farlane schemas"
    );
}

#[test]
fn schemas_and_reference_follow_from_the_types() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let folder = docs.join("schemas");
    let all = documents();
    for Documented { file, schema, .. } in &all {
        let text = serde_json::to_string_pretty(schema).expect("plain keys") + "\n";
        keep(&folder.join(file).with_extension("json"), &text);
    }
    let named: BTreeSet<_> = all.iter().map(|document| format!("{}.json", document.file)).collect();
    let entries = std::fs::read_dir(&folder).expect("docs/schemas");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().unwrap());
    assert_eq!(names.collect::<BTreeSet<_>>(), named, "docs/schemas has other files");
    let path = docs.join("json.md");
    let page = std::fs::read_to_string(&path).expect("docs/json.md");
    let (by_hand, _) = page.split_once(page::MARK).expect("the mark of what is generated");
    keep(&path, &format!("{by_hand}{}{}", page::MARK, page::reference(&all)));
}

#[test]
fn text_by_hand_names_every_command_with_a_document() {
    let page = include_str!("../../../../../docs/json.md");
    let (by_hand, _) = page.split_once(page::MARK).expect("the mark of what is generated");
    for Documented { heading, .. } in documents() {
        let name = heading.trim_start_matches('`').split(" --").next().expect("a name");
        // The page lists subcommands of `farlane latency` in brackets behind the command.
        let (group, last) = name.rsplit_once(' ').expect("a command");
        let known = [format!("`{name}`"), format!("`{group}` (")];
        assert!(
            known.iter().any(|known| by_hand.contains(known)) && by_hand.contains(last),
            "docs/json.md does not name {name}"
        );
    }
}
