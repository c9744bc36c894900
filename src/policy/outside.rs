//! Services of the host that programs look for inside, where they are not: from data (`profiles/outside.json`), so that
//! a command that failed for it does not leave a person guessing.

use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

#[derive(Debug, Deserialize)]
struct Service {
    name: String,
    programs: Vec<String>,
    sockets: Vec<PathBuf>,
    why: String,
    grant: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Table {
    services: Vec<Service>,
}

/// A service that was looked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sought {
    pub name: String,
    /// The socket that was not there; nothing if the service is known by the command's name.
    pub socket: Option<PathBuf>,
    /// Why it is not inside.
    pub why: String,
    /// What would let it in, if anything does.
    pub grant: Option<String>,
}

/// The services that a command looked for: by its name, and by the sockets that were not to be connected to.
pub fn sought(program: &OsStr, missed: &[PathBuf]) -> Vec<Sought> {
    // A test reads the table; should it be damaged all the same, nothing is told.
    let table: Table = serde_json::from_str(include_str!("../../profiles/outside.json")).unwrap_or_default();
    let program = Path::new(program).file_name();
    let find = |service: Service| {
        let Service {
            name,
            programs,
            sockets,
            why,
            grant,
        } = service;
        let socket = missed
            .iter()
            .find(|path| sockets.iter().any(|socket| path.ends_with(socket)));
        let named = programs
            .iter()
            .any(|one| program.is_some_and(|program| program == one.as_str()));
        (named || socket.is_some()).then(|| Sought {
            name,
            socket: socket.cloned(),
            why,
            grant,
        })
    };
    table.services.into_iter().filter_map(find).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_known_by_a_program_or_a_socket_and_nothing_else() {
        for (program, missed, expected) in [
            ("/usr/bin/docker", &[][..], &["the container engine"][..]),
            ("sh", &["/var/run/docker.sock"], &["the container engine"]),
            ("git", &["/root/.gnupg/S.gpg-agent"], &["gpg's agent"]),
            ("crontab", &[], &["the machine's clock for jobs"]),
            ("sh", &["/run/nscd/socket", "/x/mydocker.sock"], &[]),
            ("true", &[], &[]),
        ] {
            let missed: Vec<PathBuf> = missed.iter().map(PathBuf::from).collect();
            let found = sought(OsStr::new(program), &missed);
            let names: Vec<String> = found.into_iter().map(|one| one.name).collect();
            assert_eq!(names, expected, "{program} {missed:?}");
        }
    }
}
