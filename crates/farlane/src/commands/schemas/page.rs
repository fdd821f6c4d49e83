//! Schemas as sections of `docs/json.md`: one for each document, one table for each type.

use super::Documented;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The line of the page before the generated part.
pub const MARK: &str =
    "<!-- Generated from here on: FARLANE_WRITE_SCHEMAS=1 cargo test -p farlane schemas -->\n";

type Object = Map<String, Value>;

/// Returns the sections of all documents. A type that several documents use is in the section of
/// the first of these documents.
pub fn reference(documents: &[Documented]) -> String {
    let mut page = String::new();
    let mut known: BTreeMap<String, Value> = BTreeMap::new();
    let mut roots: Vec<(&str, &Value)> = Vec::new();
    for Documented { file, heading, note, schema } in documents {
        let root = schema.as_object().expect("a document is an object");
        let intro = prose(&format!("{} {note}", text(root, "description")));
        let _ = write!(page, "\n## {heading}\n\n{intro}\n\n");
        let _ = write!(page, "JSON Schema: [schemas/{file}.json](schemas/{file}.json).\n\n");
        page += &table(root);
        for (name, definition) in referred(root) {
            match known.get(&name) {
                Some(before) => {
                    assert_eq!(before, &definition, "two types have the name {name}");
                }
                None => {
                    let keys = definition.get("properties");
                    let whole = roots.iter().find(|(_, properties)| Some(*properties) == keys);
                    let about = match whole {
                        Some((heading, _)) => {
                            let plain = heading.replace('`', "");
                            format!("The document of [{plain}](#{}).\n", anchor(&plain))
                        }
                        None => section(&definition),
                    };
                    let _ = write!(page, "\n### {name}\n\n{about}");
                    known.insert(name, definition);
                }
            }
        }
        roots.extend(root.get("properties").map(|properties| (*heading, properties)));
    }
    page
}

/// Description and table of a type.
fn section(definition: &Value) -> String {
    let object = definition.as_object().expect("a type is an object");
    format!("{}\n\n{}", prose(text(object, "description")), table(object))
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || " _-".contains(*c);
    heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

fn text<'a>(object: &'a Object, key: &str) -> &'a str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// All types of a document, in the order of their first use from the top.
fn referred(root: &Object) -> Vec<(String, Value)> {
    let none = Object::new();
    let types = root.get("$defs").and_then(Value::as_object).unwrap_or(&none);
    let mut found: Vec<(String, Value)> = Vec::new();
    let mut next = names(root);
    while !next.is_empty() {
        let mut below = Vec::new();
        for name in next {
            if found.iter().all(|(known, _)| *known != name) {
                let definition = &types[&name];
                below.extend(names(definition.as_object().expect("a type is an object")));
                found.push((name, definition.clone()));
            }
        }
        next = below;
    }
    found
}

/// The types to which the keys of an object refer, in the order of the keys.
fn names(object: &Object) -> Vec<String> {
    fn collect(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::Object(members) => {
                out.extend(members.get("$ref").map(|reference| name(reference).to_owned()));
                members.values().for_each(|member| collect(member, out));
            }
            Value::Array(elements) => elements.iter().for_each(|element| collect(element, out)),
            _ => {}
        }
    }
    let mut out = Vec::new();
    keys(object).into_iter().for_each(|(_, schema, _)| collect(schema, &mut out));
    out
}

fn name(reference: &Value) -> &str {
    let path = reference.as_str().expect("a path");
    path.strip_prefix("#/$defs/").expect("a type of this document")
}

/// Key, schema, and whether the key is required. Required keys are first, in the document's order.
fn keys(object: &Object) -> Vec<(&str, &Value, bool)> {
    let Some(properties) = object.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let required = object.get("required").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let required: Vec<&str> = required.iter().filter_map(Value::as_str).collect();
    let always = required.iter().map(|key| (*key, &properties[*key], true));
    let others = properties.iter().filter(|(key, _)| !required.contains(&key.as_str()));
    always.chain(others.map(|(key, schema)| (key.as_str(), schema, false))).collect()
}

/// The keys of an object, or the values of an enumeration, as a table.
fn table(object: &Object) -> String {
    if let Some(values) = object.get("oneOf").and_then(Value::as_array) {
        let row = |value: &Value| {
            let value = value.as_object().expect("a value");
            format!("| `{}` | {} |\n", text(value, "const"), cell(text(value, "description")))
        };
        return "| value | meaning |\n| --- | --- |\n".to_owned()
            + &values.iter().map(row).collect::<String>();
    }
    let row = |(key, schema, always): (&str, &Value, bool)| {
        let object = schema.as_object().expect("a schema");
        let about = text(object, "description");
        assert!(!about.is_empty(), "{key} has no description");
        let may_miss = if always { "" } else { ", optional" };
        format!("| `{key}` | {}{may_miss} | {} |\n", kind(schema), cell(about))
    };
    let rows: String = keys(object).into_iter().map(row).collect();
    assert!(!rows.is_empty(), "neither keys nor values: {object:?}");
    format!("| key | type | meaning |\n| --- | --- | --- |\n{rows}")
}

/// The type of a value, in the notation of the page.
fn kind(schema: &Value) -> String {
    let Some(object) = schema.as_object() else { return "any".to_owned() };
    if let Some(reference) = object.get("$ref") {
        let name = name(reference);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(Value::Array(choices)) = object.get("anyOf") {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match object.get("type") {
        Some(Value::Array(types)) => {
            let one = |one: &Value| plain(one.as_str().expect("a name"), object);
            types.iter().map(one).collect::<Vec<_>>().join(" or ")
        }
        Some(Value::String(one)) => plain(one, object),
        _ => panic!("no type: {schema}"),
    }
}

fn plain(one: &str, object: &Object) -> String {
    match one {
        "integer" if object.contains_key("minimum") => "count".to_owned(),
        "string" => "text".to_owned(),
        "array" => list(object),
        "object" => format!("object of {} by name", kind(&object["additionalProperties"])),
        "integer" | "number" | "boolean" | "null" => one.to_owned(),
        _ => panic!("an unknown type: {one}"),
    }
}

fn list(object: &Object) -> String {
    if let Some(Value::Array(elements)) = object.get("prefixItems") {
        return format!("[{}]", elements.iter().map(kind).collect::<Vec<_>>().join(", "));
    }
    let element = kind(&object["items"]);
    match object.get("maxItems") {
        Some(count) => format!("list of {count} × {element}"),
        None => format!("list of {element}"),
    }
}

/// Text in a cell of a table.
fn cell(text: &str) -> String {
    prose(text).replace('|', "\\|")
}

/// Text of comments in which every `docs/PAGE.md` becomes a link.
fn prose(text: &str) -> String {
    let word = |word: &str| {
        let Some(from) = word.find("docs/") else { return word.to_owned() };
        let is_path = |c: char| c.is_ascii_alphanumeric() || "/-_.#".contains(c);
        let (before, rest) = word.split_at(from);
        let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
        let path = rest[..end].trim_end_matches('.');
        let behind = rest[path.len()..].trim_start_matches('`');
        let target = &path["docs/".len()..];
        let page = target.split('#').next().expect("a page");
        format!("{}[{page}]({target}){behind}", before.trim_end_matches('`'))
    };
    text.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[test]
fn pages_in_comments_become_links() {
    let text = "Version (docs/io.md#job-files). See `docs/push.md`, or docs/experiments/tsn-vm.md.";
    let linked = "Version ([io.md](io.md#job-files)). See [push.md](push.md), or \
                  [experiments/tsn-vm.md](experiments/tsn-vm.md).";
    assert_eq!(prose(text), linked);
}
