//! `/proc/PID/stat`, as proc_pid_stat(5) has it.

/// The fields of `stat` from field 3 on. Field 2, the name, is in parentheses and may contain any
/// characters.
pub fn behind_name(stat: &str) -> Option<std::str::SplitWhitespace<'_>> {
    Some(stat.rsplit_once(')')?.1.split_whitespace())
}
