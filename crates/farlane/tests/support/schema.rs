//! Checks documents against schemas, with the keywords of JSON Schema 2020-12 that occur in
//! `docs/schemas`. In addition to the standard, a key that the schema does not have is an error.

use serde_json::{Map, Value};

/// Keywords that are checked, and keywords that do not restrict values.
const KEYWORDS: [&str; 22] = [
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "pattern",
    "prefixItems",
    "properties",
    "required",
    "title",
    "type",
];

/// Returns the mistakes of a document, each with its place.
pub fn errors(schema: &Value, document: &Value) -> Vec<String> {
    let mut check = Check { root: schema, errors: Vec::new() };
    check.value(schema, document, "");
    check.errors
}

struct Check<'a> {
    root: &'a Value,
    errors: Vec<String>,
}

impl<'a> Check<'a> {
    fn wrong(&mut self, at: &str, why: &str) {
        self.errors.push(format!("{at}: {why}"));
    }

    fn value(&mut self, schema: &'a Value, value: &Value, at: &str) {
        let Some(schema) = schema.as_object() else { return };
        for keyword in schema.keys() {
            assert!(KEYWORDS.contains(&keyword.as_str()), "{keyword} is not checked");
        }
        if let Some(path) = schema.get("$ref").and_then(Value::as_str) {
            let pointer = path.strip_prefix('#').expect("a type of this document");
            self.value(self.root.pointer(pointer).expect("the type"), value, at);
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema.get(key).and_then(Value::as_array) {
                self.choice(choices, value, at);
            }
        }
        self.scalar(schema, value, at);
        match value {
            Value::Object(members) => self.object(schema, members, at),
            Value::Array(elements) => self.array(schema, elements, at),
            _ => {}
        }
    }

    /// Adds the errors of the choice with the fewest errors.
    fn choice(&mut self, choices: &'a [Value], value: &Value, at: &str) {
        let errors = choices.iter().map(|choice| {
            let mut check = Check { root: self.root, errors: Vec::new() };
            check.value(choice, value, at);
            check.errors
        });
        self.errors.extend(errors.min_by_key(Vec::len).expect("a choice"));
    }

    fn scalar(&mut self, schema: &Map<String, Value>, value: &Value, at: &str) {
        let fits = match schema.get("type") {
            Some(Value::Array(types)) => types.iter().any(|one| is(one, value)),
            Some(one) => is(one, value),
            None => true,
        };
        if !fits {
            self.wrong(at, &format!("{value} is not of type {}", schema["type"]));
        }
        if schema.get("const").is_some_and(|only| only != value) {
            self.wrong(at, &format!("{value} is not {}", schema["const"]));
        }
        let listed = schema.get("enum").and_then(Value::as_array);
        if listed.is_some_and(|values| !values.contains(value)) {
            self.wrong(at, &format!("{value} is not in {}", schema["enum"]));
        }
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let Some(number) = value.as_f64() else { return };
        if bound("minimum").is_some_and(|least| number < least)
            || bound("maximum").is_some_and(|most| number > most)
        {
            self.wrong(at, &format!("{value} is out of range"));
        }
    }

    fn object(&mut self, schema: &'a Map<String, Value>, members: &Map<String, Value>, at: &str) {
        let required = schema.get("required").and_then(Value::as_array);
        for key in required.into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(key) {
                self.wrong(at, &format!("no {key}"));
            }
        }
        // The keys are in the choices or in the referenced type.
        if !schema.contains_key("type") {
            return;
        }
        let properties = schema.get("properties").and_then(Value::as_object);
        for (key, value) in members {
            let named = properties.and_then(|properties| properties.get(key));
            match named.or_else(|| schema.get("additionalProperties")) {
                Some(schema) => self.value(schema, value, &format!("{at}/{key}")),
                None => self.wrong(at, &format!("{key} has no description")),
            }
        }
    }

    fn array(&mut self, schema: &'a Map<String, Value>, elements: &[Value], at: &str) {
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let length = elements.len() as u64;
        if count("minItems").is_some_and(|least| length < least)
            || count("maxItems").is_some_and(|most| length > most)
        {
            self.wrong(at, &format!("{length} elements"));
        }
        let first = schema.get("prefixItems").and_then(Value::as_array);
        let first = first.map_or(&[][..], Vec::as_slice);
        for (number, element) in elements.iter().enumerate() {
            if let Some(schema) = first.get(number).or_else(|| schema.get("items")) {
                self.value(schema, element, &format!("{at}/{number}"));
            }
        }
    }
}

fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().expect("the name of a type") {
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        "null" => value.is_null(),
        other => panic!("an unknown type: {other}"),
    }
}

#[test]
fn each_kind_of_mistake_is_found() {
    let schema = serde_json::json!({
        "type": "object",
        "properties": {
            "count": { "type": "integer", "minimum": 0, "maximum": 255 },
            "pair": {
                "type": "array", "minItems": 2, "maxItems": 2,
                "prefixItems": [{ "type": "string" }, { "const": 1 }],
            },
            "part": { "anyOf": [{ "$ref": "#/$defs/Part" }, { "type": "null" }] },
            "names": { "type": "object", "additionalProperties": { "type": "boolean" } },
        },
        "required": ["count"],
        "$defs": {
            "Part": { "oneOf": [{ "const": "a" }, { "const": "b" }] },
        },
    });
    let mistakes = |text: &str| errors(&schema, &serde_json::from_str(text).unwrap());
    let whole = r#"{"count": 3, "pair": ["x", 1], "part": "b", "names": {"any": true}}"#;
    assert_eq!(mistakes(whole), [""; 0]);
    assert_eq!(mistakes(r#"{"count": 0, "part": null}"#), [""; 0]);
    assert_eq!(mistakes("{}"), [": no count"]);
    assert_eq!(mistakes(r#"{"count": 256}"#), ["/count: 256 is out of range"]);
    assert_eq!(mistakes(r#"{"count": 1, "other": 1}"#), [": other has no description"]);
    assert_eq!(mistakes(r#"{"count": 1, "pair": ["x"]}"#), ["/pair: 1 elements"]);
    assert_eq!(mistakes(r#"{"count": 1, "pair": ["x", 2]}"#), ["/pair/1: 2 is not 1"]);
    assert_eq!(mistakes(r#"{"count": 1, "part": "c"}"#).len(), 1);
    let error = "/names/x: 1 is not of type \"boolean\"";
    assert_eq!(mistakes(r#"{"count": 1, "names": {"x": 1}}"#), [error]);
}
