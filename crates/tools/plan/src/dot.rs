//! Networks for Graphviz.

use super::Planned;
use std::fmt::Write as _;

impl Planned {
    /// Returns the network as a graph in Graphviz's language DOT: stations are boxes, bridges are
    /// ellipses, cables are edges labelled with their rates.
    pub fn dot(&self) -> String {
        let mut out = "graph {\n".to_owned();
        for (names, shape) in [(&self.stations, "box"), (&self.bridges, "ellipse")] {
            for name in names {
                let _ = writeln!(out, "  {} [shape={shape}]", quoted(name));
            }
        }
        let network = &self.config.network;
        for cable in &network.cables {
            let [a, b] = [cable.a, cable.b].map(|end| quoted(self.node_name(end)));
            let _ = writeln!(out, "  {a} -- {b} [label=\"{}\"]", network.port(cable.a).rate);
        }
        out + "}\n"
    }
}

/// Returns a name in quotes. The label of a node is its name, in which backslashes begin escapes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', r"\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use crate::tests::built;

    #[test]
    fn networks_are_graphs_with_quoted_names() {
        let planned = built(
            "runtime = \"1ms\"\n[nodes.'a \"1\" \\']\n[nodes.c]\n[bridges.b-1]\n\
             [cables.x]\na = 'a \"1\" \\'\nb = \"b-1\"\nrate = \"100M\"\n\
             [cables.y]\na = \"c\"\nb = \"b-1\"\nrate = \"2.5G\"\n\
             [traffic.t]\nfrom = \"c\"\nto = 'a \"1\" \\'\ninterval = \"1ms\"\n",
        );
        let expected = r#"graph {
  "a \"1\" \\" [shape=box]
  "c" [shape=box]
  "b-1" [shape=ellipse]
  "a \"1\" \\" -- "b-1" [label="100M"]
  "c" -- "b-1" [label="2.5G"]
}
"#;
        assert_eq!(planned.dot(), expected);
    }
}
