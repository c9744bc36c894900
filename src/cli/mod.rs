//! The command line.

/// One verb, then out.
pub fn main() -> std::process::ExitCode {
    std::process::ExitCode::SUCCESS
}
