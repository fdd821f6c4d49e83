//! Parses `/proc/PID/stat` (proc_pid_stat(5)).

/// The fields of `stat` from field 3 on. `None` without field 2, the name, which is in parentheses
/// and may contain any characters.
pub fn behind_name(stat: &str) -> Option<std::str::SplitWhitespace<'_>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}
