//! Command plugins. Not here yet: nothing of it can be reached from the command line.
#![forbid(unsafe_code)]
