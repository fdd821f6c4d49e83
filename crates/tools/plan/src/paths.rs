//! Paths of streams: given by names, shortest, or disjoint.

use keys::{KeyError, Names, Origin, Section};
use sim::network::{Path, Place, ShortestPaths, Wiring};
use std::cell::RefCell;
use std::collections::BTreeMap;

/// A path in the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathNames {
    /// Bridges, and cables where two nodes have several: `"left > upper > right"`.
    Given(Vec<String>),
    /// The path with the fewest cables.
    Shortest,
    /// Two paths that share as few cables and bridges as possible.
    Disjoint,
}

/// Names and cables from which paths are made.
pub struct Paths<'a> {
    pub wiring: &'a Wiring<'a>,
    /// Names of the stations, then of the bridges.
    names: &'a Names,
    cables: Names,
    /// Shortest paths from stations, computed once.
    shortest: RefCell<BTreeMap<usize, ShortestPaths>>,
}

impl<'a> Paths<'a> {
    pub fn new(root: &Section<'_>, names: &'a Names, wiring: &'a Wiring<'a>) -> Self {
        let cables = root.named("cables").into_iter().map(|(name, _)| name).collect();
        Self { wiring, names, cables, shortest: RefCell::default() }
    }

    /// Returns the cables of one path between two stations.
    ///
    /// # Errors
    /// A name that is neither bridge nor cable, nodes without a cable between them, or two paths.
    pub fn one(
        &self,
        origin: &Origin,
        path: &PathNames,
        (from, to): (usize, usize),
    ) -> Result<Path, KeyError> {
        let fail = |message: String| origin.fail(format!("paths: {message}"));
        match path {
            PathNames::Given(names) => {
                let nodes = self.given(origin, names, from)?;
                self.cables(&nodes, to).map_err(fail)
            }
            PathNames::Shortest => {
                let mut all = self.shortest.borrow_mut();
                let shortest = all.entry(from).or_insert_with(|| self.wiring.shortest(from));
                shortest.to(to).ok_or_else(|| fail(self.no_path(from, to, "no path")))
            }
            PathNames::Disjoint => {
                Err(fail("\"disjoint\" are two paths; [streams.NAME] has several".to_owned()))
            }
        }
    }

    /// Returns the cables of all paths between two stations.
    ///
    /// # Errors
    /// As [`one`](Self::one), or a single path for `disjoint`.
    pub fn all(
        &self,
        origin: &Origin,
        path: &PathNames,
        (from, to): (usize, usize),
    ) -> Result<Vec<Path>, KeyError> {
        if *path != PathNames::Disjoint {
            return Ok(vec![self.one(origin, path, (from, to))?]);
        }
        let two = self.wiring.disjoint(from, to).map(Vec::from);
        two.ok_or_else(|| {
            origin.fail(format!("paths: {}", self.no_path(from, to, "only one path, or none,")))
        })
    }

    fn no_path(&self, from: usize, to: usize, what: &str) -> String {
        format!("{what} leads from '{}' to '{}'", self.names[from], self.names[to])
    }

    /// Returns what a path passes, with the sender first.
    fn given(&self, origin: &Origin, names: &[String], from: usize) -> Result<Vec<Step>, KeyError> {
        let stations = self.wiring.network.stations.len();
        let step = |name: &String| {
            let bridge = self.names.find(stations..self.names.len(), "bridge", name);
            if let (Err(_), Ok(cable)) =
                (&bridge, self.cables.find(0..self.cables.len(), "cable", name))
            {
                return Ok(Step::Cable(cable));
            }
            let bridge = bridge.map_err(|message| origin.fail(message))?;
            Ok(Step::Node(Place::Bridge(bridge - stations)))
        };
        let first = std::iter::once(Ok(Step::Node(Place::Station(from))));
        first.chain(names.iter().map(step)).collect()
    }

    /// Returns the cables between these steps and the station `to`.
    fn cables(&self, steps: &[Step], to: usize) -> Result<Path, String> {
        let (mut path, mut here, mut named) = (Path::new(), None, false);
        for step in steps.iter().chain([&Step::Node(Place::Station(to))]) {
            match (*step, here) {
                (Step::Node(node), None) => here = Some(node),
                (Step::Node(node), Some(before)) if named && node == before => named = false,
                (Step::Node(node), Some(before)) => {
                    path.extend(self.between(before, node)?);
                    (here, named) = (Some(node), false);
                }
                (Step::Cable(cable), before) => {
                    let ends = &self.wiring.network.cables[cable];
                    let ends = [ends.a.node(), ends.b.node()];
                    let from = ends.iter().position(|end| Some(*end) == before);
                    let name = &self.cables[cable];
                    let from = from.ok_or_else(|| format!("the path does not reach '{name}'"))?;
                    path.push(cable);
                    (here, named) = (Some(ends[1 - from]), true);
                }
            }
        }
        Ok(path)
    }

    fn between(&self, from: Place, to: Place) -> Result<Path, String> {
        let found = self.wiring.path(&[from, to]);
        found.map_err(|_| format!("no cable leads from {} to {}", self.name(from), self.name(to)))
    }

    fn name(&self, place: Place) -> &str {
        match place {
            Place::Station(station) => &self.names[station],
            Place::Bridge(bridge) => &self.names[self.wiring.network.stations.len() + bridge],
        }
    }
}

/// A step of a path.
#[derive(Clone, Copy)]
enum Step {
    Node(Place),
    Cable(usize),
}
