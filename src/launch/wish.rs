//! What a person asks for, and its way to a frozen policy: the steps load and resolve of the line.

use super::Setting;
use crate::base::text::visible;
use crate::base::{AbsPath, Explain, Fault, Kind, Port, dirs};
use crate::policy::{
    Access, CommandGrant, EnvWish, FileKind, Limits, Network, Policy, Profile, Request, check_workspace, load,
    preparations, resolve, workspace_folder, workspace_root,
};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// The broker's port on every sandbox's own loopback; nothing else is there, so it is always free.
const BROKER: u16 = 3129;
/// Both spellings of the variables by which programs find a proxy (curl reads only the lower-case `http_proxy`).
const PROXY_VARIABLES: [&str; 4] = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const NO_PROXY_VARIABLES: [&str; 2] = ["NO_PROXY", "no_proxy"];
const NO_PROXY: &str = "127.0.0.1,localhost,::1";

/// Grants beside the profile, as typed. Bytes, not text; it survives the way from `start` to the pane.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wish {
    pub profile: Option<OsString>,
    pub allow: Vec<OsString>,
    pub read: Vec<OsString>,
    pub allow_domains: Vec<String>,
    pub services: Vec<String>,
    pub listen_ports: Vec<Port>,
    pub open_ports: Vec<Port>,
    pub block_net: bool,
    pub env: Vec<OsString>,
    /// Promises that may be missing, by their full names.
    #[serde(default)]
    pub allow_missing: Vec<String>,
    /// Each wins over the profile's.
    #[serde(default)]
    pub bounds: Limits,
    #[serde(default)]
    pub tmp_size: Option<u64>,
    /// The workspace itself, as `--workdir` names it: this folder and nothing around it.
    pub workdir: Option<OsString>,
    /// Where a wish without `workdir` was made, once it has left the process that made it.
    pub from: Option<OsString>,
}

/// A port was asked for that is the broker's in every sandbox.
#[derive(Debug, thiserror::Error)]
#[error("port {BROKER} cannot be opened or published: inside every sandbox it is the broker's")]
pub struct BrokersPort;

impl Explain for BrokersPort {
    fn kind(&self) -> Kind {
        Kind::Config
    }
    fn hint(&self) -> Option<String> {
        Some("choose another port, or grant the service by name: --service NAME.pinfold=127.0.0.1:PORT".into())
    }
}

/// A variable is to be passed on that this process does not have.
#[derive(Debug, thiserror::Error)]
#[error("--env {}: there is no such variable here to pass on", visible(.0))]
pub struct Unset(OsString);

impl Explain for Unset {
    fn kind(&self) -> Kind {
        Kind::Usage
    }
    fn hint(&self) -> Option<String> {
        Some("export it first, or write its value: --env NAME=VALUE".into())
    }
}

/// What a launch adds to a wish.
#[derive(Debug, Default)]
pub struct Additions {
    pub closed_ports: Vec<Port>,
    pub open_ports: Vec<Port>,
    pub environment: Vec<(OsString, OsString)>,
    pub variables: Vec<(String, PathBuf)>,
}

/// The broker's port.
pub fn broker_port() -> Option<Port> {
    Port::new(BROKER)
}

impl Wish {
    /// The folder that the wish starts from, absolute.
    pub fn start(&self, setting: &Setting) -> PathBuf {
        let named = self.workdir.as_ref().or(self.from.as_ref());
        named.map_or_else(|| setting.here.clone(), |dir| setting.here.join(dir))
    }

    /// The workspace root, fixed here and now: it does not follow a later `cd`. The folder that was named, else the
    /// project's top level.
    pub fn root(&self, setting: &Setting) -> Result<AbsPath, Fault> {
        let start = self.start(setting);
        let found = match self.workdir {
            Some(_) => workspace_folder(&start, &setting.host),
            None => workspace_root(&start, &setting.host),
        };
        Ok(found?)
    }

    /// The same, if it can be granted at all: told before anything that is looked for beside it.
    pub fn checked_root(&self, setting: &Setting) -> Result<AbsPath, Fault> {
        check_workspace(&self.request(Additions::default(), setting)?, &setting.host)?;
        self.root(setting)
    }

    /// Whether every variable that is to be passed on is there. Only for a wish as it was typed: of a recorded one the
    /// values are gone, and it is resolved without them.
    pub fn check_variables(&self, setting: &Setting) -> Result<(), Unset> {
        let is_missing = |text: &&OsString| {
            let is_name = !text.is_empty() && !text.as_bytes().contains(&b'=');
            is_name && !setting.environ.contains_key(text.as_os_str())
        };
        let missing = self.env.iter().find(is_missing);
        missing.map_or(Ok(()), |name| Err(Unset(name.clone())))
    }

    /// The profile with all that it extends.
    pub fn profile(&self, default: &str, setting: &Setting) -> Result<Profile, Fault> {
        let name = self
            .profile
            .as_deref()
            .map_or_else(|| default.into(), |name| name.to_string_lossy());
        let name = if name.contains('/') {
            setting.here.join(&*name).to_string_lossy().into_owned()
        } else {
            name.into()
        };
        let mut profile = load(&name, &setting.profile_folders(), &setting.host)?;
        let (own, wished) = (&mut profile.limits, &self.bounds);
        own.memory = wished.memory.or(own.memory);
        own.processes = wished.processes.or(own.processes);
        own.cpu = wished.cpu.or(own.cpu);
        profile.scratch_size = self.tmp_size.or(profile.scratch_size);
        Ok(profile)
    }

    /// The frozen policy. Folders that the profile wants made (all of them Pinfold's own) are made.
    pub fn policy(&self, default: &str, additions: Additions, setting: &Setting) -> Result<Policy, Fault> {
        let profile = self.profile(default, setting)?;
        let request = self.request(additions, setting)?;
        for wanted in preparations(&profile, &request, &setting.host)? {
            prepare(&wanted.path, wanted.kind)?;
        }
        let mut policy = resolve(&profile, &request, &setting.host)?;
        let asked = policy.network.open_ports.iter().chain(&policy.network.listen_ports);
        if asked.into_iter().any(|port| Some(*port) == broker_port()) {
            return Err(BrokersPort.into());
        }
        name_the_broker(&mut policy);
        Ok(policy)
    }

    pub(super) fn request(&self, additions: Additions, setting: &Setting) -> Result<Request, Fault> {
        let grant = |flag: &str, path: &OsString, access| CommandGrant {
            flag: flag.into(),
            path: path.into(),
            access,
        };
        let allow = self.allow.iter().map(|path| grant("--allow", path, Access::ReadWrite));
        let read = self.read.iter().map(|path| grant("--read", path, Access::Read));
        Ok(Request {
            root: Some(self.root(setting)?.as_path().to_owned()),
            workdir: self.start(setting),
            grants: allow.chain(read).collect(),
            allow_domains: self.allow_domains.clone(),
            services: self.services.clone(),
            open_ports: self.open_ports.iter().copied().chain(additions.open_ports).collect(),
            listen_ports: self.listen_ports.clone(),
            closed_ports: additions.closed_ports,
            block_net: self.block_net,
            env: self.env.iter().map(|text| env_wish(text)).collect(),
            added_env: additions.environment,
            variables: additions.variables.into_iter().chain([kept(setting)]).collect(),
            own_folders: setting.own_folders(),
            own_program: Some(setting.program.clone()),
            // Parsed when they were typed; a record that names another promise weakens nothing.
            allow_missing: self.allow_missing.iter().filter_map(|name| name.parse().ok()).collect(),
        })
    }
}

/// Where profiles keep what programs in sandboxes write and find again: apart from the folders that the same programs use
/// outside, so that nothing made inside is run or trusted there.
fn kept(setting: &Setting) -> (String, PathBuf) {
    ("PINFOLD_KEPT".into(), setting.dirs.data.as_path().join("kept"))
}

fn env_wish(text: &OsStr) -> EnvWish {
    let bytes = text.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => {
            let (name, value) = bytes.split_at(at);
            let value = value.get(1..).unwrap_or_default();
            EnvWish::Set(OsString::from_vec(name.to_vec()), OsString::from_vec(value.to_vec()))
        }
        None => EnvWish::Pass(text.to_owned()),
    }
}

pub(super) fn name_the_broker(policy: &mut Policy) {
    if policy.network.mode != Network::Brokered {
        return;
    }
    let address = OsString::from(format!("http://127.0.0.1:{BROKER}"));
    let variables = &mut policy.environment.0;
    variables.extend(PROXY_VARIABLES.map(|name| (OsString::from(name), address.clone())));
    variables.extend(NO_PROXY_VARIABLES.map(|name| (OsString::from(name), OsString::from(NO_PROXY))));
}

/// Makes what is missing; what stands there already is left as it is.
fn prepare(path: &AbsPath, kind: FileKind) -> Result<(), Fault> {
    if kind == FileKind::Dir {
        return Ok(dirs::make(path)?);
    }
    if let Some(parent) = path.parent() {
        dirs::make(&parent)?;
    }
    let made = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    match made {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(dirs::DirsError::Io {
            path: path.as_path().to_owned(),
            source: error,
        }
        .into()),
        _ => Ok(()),
    }
}
