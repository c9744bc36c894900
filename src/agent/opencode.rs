//! OpenCode 1.x (`serve` and `attach`) and 2.x (`serve` and `--server`), told apart by version.
//!
//! 1.x was measured on 1.18.33; 2.x follows its published source and other people's measurements, since no package
//! registry that we know of carries it.

mod arguments;

use super::program::{Checked, check, on_path};
use super::{
    AGENTS_FOLDER, Additions, Agent, AgentError, Candidate, Probe, Program, Resume, Search, Side, Source, Version,
};
use crate::base::{AbsPath, Port, Secret};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The npm package of the command that a person installs.
const PACKAGE: &str = "opencode-ai";
/// The program's name on PATH and in each package's `bin`.
const BINARY: &str = "opencode";
/// 1.x reads the first name, 2.x the second and then the first.
const PASSWORDS: [&str; 2] = ["OPENCODE_SERVER_PASSWORD", "OPENCODE_PASSWORD"];
/// Both versions expect it where no other name was set.
const USER: &str = "opencode";

/// A person's own configuration, credentials and server names reach a sandbox by the profile, not by accident.
const NOT_INHERITED: &[&str] = &["OPENCODE_CONFIG*", "OPENCODE_AUTH*", "OPENCODE_TUI_CONFIG"];
/// On one side only it would make the other's password wrong.
const NEVER_SERVER: &[&str] = &["OPENCODE_SERVER_USERNAME"];
/// OpenCode does not exempt loopback, so a proxy would get the password in clear.
const NEVER_CLIENT: &[&str] = &[
    "OPENCODE_SERVER_USERNAME",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];
/// It takes names and addresses, no prefixes.
const NO_PROXY: &str = "127.0.0.1,localhost,::1";

/// The only agent so far with two sides.
pub(super) struct OpenCode;

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn profile(&self, side: Side) -> &'static str {
        match side {
            Side::Server => "opencode-server",
            Side::Client => "opencode-client",
        }
    }

    fn find(&self, search: &Search<'_>) -> Result<Candidate, AgentError> {
        if let Some(path) = search.configured {
            if !path.is_absolute() {
                return Err(AgentError::Relative { path: path.to_owned() });
            }
            return candidate(path, Source::Configured, search);
        }
        let on_path = on_path(BINARY, search.path.unwrap_or_default(), search.workspace);
        let own = programs_below(&folder(search.data)).filter(|path| path.exists());
        let mut places = on_path
            .into_iter()
            .map(|path| (path, Source::Path))
            .chain(own.map(|path| (path, Source::Own)));
        let mut first_error = None;
        let found = places.find_map(|(path, source)| match candidate(&path, source, search) {
            Ok(candidate) => Some(candidate),
            Err(error) => {
                first_error.get_or_insert(error);
                None
            }
        });
        found.ok_or_else(|| first_error.unwrap_or_else(|| missing(search.data)))
    }

    fn version_argv(&self, candidate: &Candidate) -> Vec<OsString> {
        words(&candidate.path, ["--version"])
    }

    fn parse_version(&self, output: &[u8]) -> Result<Version, AgentError> {
        Version::first_in(output)
            .filter(known)
            .ok_or_else(|| AgentError::UnknownVersion {
                agent: self.name(),
                said: String::from_utf8_lossy(&output[..output.len().min(80)])
                    .trim()
                    .to_owned(),
            })
    }

    fn server_argv(&self, program: &Program, port: Port) -> Vec<OsString> {
        words(
            &program.path,
            ["serve", "--hostname", "127.0.0.1", "--port", &port.to_string()],
        )
    }

    fn client_argv(
        &self,
        program: &Program,
        port: Port,
        resume: Resume,
        user: &[OsString],
    ) -> Result<Vec<OsString>, AgentError> {
        arguments::refuse(self.name(), user)?;
        let how = if program.version.major == 1 {
            "attach"
        } else {
            "--server"
        };
        let mut argv = words(&program.path, [how, &format!("http://127.0.0.1:{port}")]);
        if resume == Resume::Last {
            argv.push("--continue".into());
        }
        argv.extend_from_slice(user);
        Ok(argv)
    }

    fn strip(&self, words: Vec<OsString>) -> Vec<OsString> {
        words
            .into_iter()
            .filter(|word| !arguments::is_standalone(word))
            .collect()
    }

    fn additions(&self, side: Side, password: &Secret) -> Additions {
        let fixed: &[(&str, &str)] = match side {
            Side::Server => &[("NO_PROXY", NO_PROXY), ("no_proxy", NO_PROXY)],
            Side::Client => &[("OPENCODE_PURE", "1"), ("OPENCODE_DISABLE_PROJECT_CONFIG", "1")],
        };
        // The program is out of reach from inside, so an update of itself could only fail.
        let update = [("OPENCODE_DISABLE_AUTOUPDATE", "1")];
        let passwords = PASSWORDS.map(|name| (name, password.reveal()));
        let set = fixed.iter().copied().chain(update).chain(passwords);
        Additions {
            set: set
                .map(|(name, value)| (name.into(), value.into()))
                .collect::<BTreeMap<_, _>>(),
            not_inherited: NOT_INHERITED,
            never: match side {
                Side::Server => NEVER_SERVER,
                Side::Client => NEVER_CLIENT,
            },
        }
    }

    fn probe(&self, program: &Program, port: Port, password: &Secret) -> Probe {
        let major = program.version.major;
        // 1.x answers every unknown path with 200 and its web page; early 2.0 releases lack /api/info.
        let paths: &[&str] = if major == 1 {
            &["/global/health"]
        } else {
            &["/api/info", "/api/health"]
        };
        Probe {
            paths,
            major,
            user: USER,
            port,
            password: password.clone(),
        }
    }

    fn variables(&self, program: &Program, data: &AbsPath) -> Vec<(&'static str, OsString)> {
        // 2.x migrates 1.x's database in place and one way, so each major version has a folder of its own. It is a
        // sibling of the installation: what a sandbox may write never contains a program that the next launch runs.
        let kept = folder(data).join(format!("data-{}", program.version.major));
        vec![
            ("AGENT_BINARY", program.path.as_path().as_os_str().to_owned()),
            ("PINFOLD_AGENT_DATA", kept.into_os_string()),
        ]
    }
}

/// The npm packages that hold a program for this processor, the fitting one for `musl` first.
///
/// The order is that of the installer in OpenCode's own package.
pub(super) fn packages(musl: bool) -> Vec<String> {
    let (name, baseline) = match std::env::consts::ARCH {
        "aarch64" => ("linux-arm64", &[""][..]),
        _ if has_avx2() => ("linux-x64", &["", "-baseline"][..]),
        _ => ("linux-x64", &["-baseline", ""][..]),
    };
    let libraries = if musl { ["-musl", ""] } else { ["", "-musl"] };
    libraries
        .iter()
        .flat_map(|c| baseline.iter().map(move |b| format!("opencode-{name}{b}{c}")))
        .collect()
}

#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::arch::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_avx2() -> bool {
    false
}

/// Where the program stands inside a folder that has `node_modules`.
pub(super) fn program_in(prefix: &Path, package: &str) -> PathBuf {
    prefix.join("node_modules").join(package).join("bin").join(BINARY)
}

/// Pinfold's own folder for OpenCode.
pub(super) fn folder(data: &AbsPath) -> PathBuf {
    data.as_path().join(AGENTS_FOLDER).join(BINARY)
}

/// Where programs for this processor would stand below a folder: 1.x's packages, then 2.x's.
fn programs_below(prefix: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let first = packages(false);
    let second: Vec<_> = first
        .iter()
        .map(|name| name.replacen("opencode-", "@opencode/cli-", 1))
        .collect();
    let prefix = prefix.to_owned();
    first
        .into_iter()
        .chain(second)
        .map(move |package| program_in(&prefix, &package))
}

fn candidate(path: &Path, source: Source, search: &Search<'_>) -> Result<Candidate, AgentError> {
    let program = match check(path, search.workspace)? {
        Checked::Program(program) => program,
        // npm's command is a script or a text, unless its post-install step ran; the program is found as Node would.
        Checked::Script(script) => script
            .as_path()
            .ancestors()
            .flat_map(programs_below)
            .filter(|path| path.exists())
            .find_map(|path| match check(&path, search.workspace) {
                Ok(Checked::Program(program)) => Some(program),
                Ok(Checked::Script(_)) | Err(_) => None,
            })
            .ok_or_else(|| AgentError::OnlyScript {
                path: path.to_owned(),
                package: PACKAGE,
            })?,
    };
    Ok(Candidate {
        hint: hint(program.as_path()),
        path: program,
        source,
    })
}

/// The version in the package.json beside the program's `bin`, if that is OpenCode's own.
fn hint(program: &Path) -> Option<Version> {
    #[derive(serde::Deserialize)]
    struct Package {
        name: String,
        version: String,
    }
    let file = std::fs::File::open(program.parent()?.parent()?.join("package.json")).ok()?;
    let package: Package = serde_json::from_reader(std::io::Read::take(file, 64 * 1024)).ok()?;
    let ours = package.name.starts_with("opencode-") || package.name.starts_with("@opencode/cli");
    ours.then(|| Version::first_in(package.version.as_bytes()))
        .flatten()
        .filter(known)
}

fn known(version: &Version) -> bool {
    matches!(version.major, 1 | 2)
}

fn missing(data: &AbsPath) -> AgentError {
    let own = programs_below(&folder(data)).next().unwrap_or_default();
    AgentError::Missing {
        agent: "opencode",
        package: PACKAGE,
        own,
    }
}

fn words<const N: usize>(program: &AbsPath, rest: [&str; N]) -> Vec<OsString> {
    let program = program.as_path().as_os_str().to_owned();
    std::iter::once(program)
        .chain(rest.into_iter().map(OsString::from))
        .collect()
}

#[cfg(test)]
mod tests;
