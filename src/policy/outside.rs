//! Services of the host that programs look for inside, where they are not: from data (`profiles/outside.json`), so that
//! a command that failed for it does not leave a person guessing.

use super::frozen::{FileKind, Policy};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
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
pub fn sought(argv: &[OsString], missed: &[PathBuf], policy: &Policy) -> Vec<Sought> {
    // A test reads the table; should it be damaged all the same, nothing is told.
    let table: Table = serde_json::from_str(include_str!("../../profiles/outside.json")).unwrap_or_default();
    let program = argv.first().and_then(|program| Path::new(program).file_name());
    let granted = |socket: &PathBuf| {
        let mut sockets = policy.binds.iter().filter(|bind| bind.kind == FileKind::Socket);
        sockets.any(|bind| bind.target.as_path().ends_with(socket))
    };
    let find = |service: Service| {
        let Service {
            name,
            programs,
            sockets,
            why,
            grant,
        } = service;
        if sockets.iter().any(granted) {
            return None;
        }
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
    use crate::base::AbsPath;
    use crate::policy::memory::MemoryHost;
    use crate::policy::{Access, Bind, Origin, Request, load, resolve};

    fn policy() -> Policy {
        let host = MemoryHost::debian();
        let request = Request {
            workdir: "/".into(),
            ..Request::default()
        };
        resolve(&load("system", &[], &host).unwrap(), &request, &host).unwrap()
    }

    fn names(program: &str, missed: &[&str], policy: &Policy) -> Vec<String> {
        let missed: Vec<PathBuf> = missed.iter().map(PathBuf::from).collect();
        let found = sought(&[program.into()], &missed, policy);
        found.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn a_service_is_known_by_a_program_or_a_socket_and_nothing_else() {
        let policy = policy();
        for (program, missed, expected) in [
            ("/usr/bin/docker", &[][..], &["the container engine"][..]),
            ("sh", &["/var/run/docker.sock"], &["the container engine"]),
            ("git", &["/root/.gnupg/S.gpg-agent"], &["gpg's agent"]),
            ("crontab", &[], &["the machine's clock for jobs"]),
            ("sh", &["/run/nscd/socket", "/x/mydocker.sock"], &[]),
            ("true", &[], &[]),
        ] {
            assert_eq!(names(program, missed, &policy), expected, "{program} {missed:?}");
        }
    }

    #[test]
    fn a_service_that_is_granted_is_not_told() {
        let mut policy = policy();
        let socket = AbsPath::new("/run/user/1000/gnupg/S.gpg-agent").unwrap();
        policy.binds.push(Bind {
            source: socket.clone(),
            target: socket,
            access: Access::ReadWrite,
            kind: FileKind::Socket,
            origin: Origin::built_in("test", ""),
        });
        assert_eq!(
            names("git", &["/root/.gnupg/S.gpg-agent"], &policy),
            Vec::<String>::new()
        );
    }
}
