//! All help pages in one file, `docs/help.txt`, so that reviews show changes of help texts.

use super::keep;
use crate::Cli;
use clap::{Arg, Command, CommandFactory};
use std::path::Path;

/// Columns of a help page.
const WIDTH: usize = 100;
/// Maximum number of characters of a help text: two lines without the indentation.
const LONGEST: usize = 2 * (WIDTH - 10);

/// Appends the page of a command and the pages of its subcommands.
fn pages(command: &mut Command, text: &mut String) {
    let page = command.clone().term_width(WIDTH).render_long_help().to_string();
    let lines: Vec<&str> = page.lines().map(str::trim_end).collect();
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    *text += &format!("$ {name} --help\n{}\n\n", lines.join("\n").trim_end());
    for argument in command.get_arguments() {
        let help = argument.get_long_help().or(argument.get_help());
        let length = help.map_or(0, |help| help.to_string().chars().count());
        assert!(length <= LONGEST, "{name}: more than two lines: {}", label(argument));
    }
    let subcommands = command.get_subcommands_mut();
    let shown = |command: &&mut Command| command.get_name() != "help" && !command.is_hide_set();
    subcommands.filter(shown).for_each(|one| pages(one, text));
}

fn label(argument: &Arg) -> String {
    argument.get_long().map_or(argument.get_id().to_string(), |long| format!("--{long}"))
}

#[test]
fn help_pages_match_docs() {
    let mut command = Cli::command();
    command.build();
    let mut text = String::new();
    pages(&mut command, &mut text);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/help.txt");
    keep(&path, &format!("{}\n", text.trim_end()));
}
