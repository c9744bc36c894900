//! The command line.
#![forbid(unsafe_code)]

/// One verb, then out.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
