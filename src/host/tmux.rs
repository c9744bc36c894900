//! Panes of tmux (3.2 or later), driven through its program.
//!
//! How words reach the pane, verified on tmux 3.3a:
//! - with two or more words after `--` tmux executes them without a shell, byte for byte; a single word would go to the
//!   person's shell, so that one is wrapped in a fixed `sh` script that executes it;
//! - a word that ends in `;` ends a tmux command; `\;` at the end stands for `;`, whatever is before it;
//! - `-c` would expand formats (`#{…}`, and `#(…)` runs a shell), and `##[` cannot be escaped; so the folder is passed as the
//!   working folder of the tmux program itself, which the server takes unread when there is no `-c`.

use super::command::{self, LIMIT, Output};
use super::error::HostError;
use super::{Focus, Host, Opened, Place, Request, Surroundings};
use crate::base::{AbsPath, Environ, PaneId, hex, program};
use nix::unistd::{AccessFlags, access};
use sha2::{Digest as _, Sha256};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::net::UnixStream;

const NAME: &str = "tmux";

/// One tmux server. Its panes are `tmux:<first 8 hexadecimal digits of sha256(socket path)>:%N`.
#[derive(Debug)]
pub struct Tmux {
    program: Result<AbsPath, program::ProgramError>,
    socket: Option<AbsPath>,
    /// The pane of this process, `%N`.
    pane: Option<String>,
}

impl Tmux {
    /// The server that TMUX names, else the user's default one. Its program is found once, here.
    pub fn new(around: &Surroundings<'_>) -> Tmux {
        let path = around
            .env
            .get(OsStr::new("PATH"))
            .map_or(OsStr::new(""), OsString::as_os_str);
        let inside = socket_of(around.env);
        let pane = around
            .env
            .get(OsStr::new("TMUX_PANE"))
            .and_then(|p| p.to_str())
            .filter(|p| is_pane(p));
        Tmux {
            program: program::find(NAME, path, around.workspace),
            pane: pane.filter(|_| inside.is_some()).map(str::to_owned),
            socket: inside.or_else(|| default_socket(around)),
        }
    }

    fn socket(&self) -> Result<&AbsPath, HostError> {
        self.socket.as_ref().ok_or(HostError::NoTerminal)
    }

    fn id(&self, pane: &str) -> Result<PaneId, HostError> {
        let server = server_of(self.socket()?);
        PaneId::new(format!("tmux:{server}:{pane}")).ok_or(HostError::NoTerminal)
    }

    /// `%N`, if the pane is one of this server.
    fn local<'a>(&self, pane: &'a PaneId) -> Result<&'a str, HostError> {
        let server = server_of(self.socket()?);
        let rest = pane
            .as_str()
            .strip_prefix("tmux:")
            .and_then(|rest| rest.strip_prefix(server.as_str()));
        let local = rest
            .and_then(|rest| rest.strip_prefix(':'))
            .filter(|local| is_pane(local));
        local.ok_or_else(|| HostError::Foreign {
            host: NAME,
            pane: pane.clone(),
        })
    }

    fn program(&self) -> Result<&AbsPath, HostError> {
        self.program.as_ref().map_err(|error| HostError::Program(error.clone()))
    }

    /// What a new pane goes beside: this pane, or for a window this pane's window. Nothing outside of tmux.
    fn target(&self, place: Place) -> Result<Option<OsString>, HostError> {
        match (&self.pane, place) {
            (None, _) => Ok(None),
            (Some(pane), Place::Right | Place::Below) => Ok(Some(pane.into())),
            (Some(pane), Place::Window) => {
                let said = self
                    .control(&["display-message", "-p", "-t", pane, "#{window_id}"])?
                    .stdout;
                Ok(Some(OsStr::from_bytes(said.trim_ascii_end()).to_owned()))
            }
        }
    }

    fn run(&self, words: Vec<OsString>, folder: &AbsPath) -> Result<Output, HostError> {
        let program = self.program()?;
        let socket = self.socket()?;
        // Asked here, because tmux tells a missing server only in words.
        if UnixStream::connect(socket).is_err() {
            return Err(HostError::NoServer(socket.clone()));
        }
        let mut args = vec![OsString::from("-S"), socket.as_path().as_os_str().to_owned()];
        args.extend(words.into_iter().map(literal));
        let output = command::run(program, &args, folder, LIMIT)?;
        match output.status.success() {
            true => Ok(output),
            // It may have been on its way out.
            false if UnixStream::connect(socket).is_err() => Err(HostError::NoServer(socket.clone())),
            false => Err(HostError::Refused {
                program: program.clone(),
                said: output.stderr,
            }),
        }
    }

    fn control(&self, words: &[&str]) -> Result<Output, HostError> {
        self.run(words.iter().map(OsString::from).collect(), &AbsPath::root())
    }
}

impl Host for Tmux {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_around(&self) -> bool {
        self.pane.is_some()
    }

    fn here(&self) -> Option<PaneId> {
        self.pane.as_ref().and_then(|pane| self.id(pane).ok())
    }

    fn open_pane(&self, request: &Request) -> Result<Opened, HostError> {
        // tmux would silently start the pane in the home folder.
        let folder = request.folder.as_path();
        if !folder.is_dir() || access(folder, AccessFlags::X_OK).is_err() {
            return Err(HostError::Folder(request.folder.clone()));
        }
        let target = self.target(request.place)?;
        let output = self.run(words(request, target)?, &request.folder)?;
        let said = output.stdout.trim_ascii_end();
        match std::str::from_utf8(said).ok().filter(|said| is_pane(said)) {
            Some(pane) => self.id(pane).map(Opened::There),
            None => Err(HostError::Answer {
                program: self.program()?.clone(),
                said: output.stdout,
            }),
        }
    }

    fn pane_exists(&self, pane: &PaneId) -> Result<bool, HostError> {
        let local = self.local(pane)?;
        match self.control(&["list-panes", "-a", "-F", "#{pane_id}"]) {
            Ok(output) => Ok(output
                .stdout
                .split(|b| *b == b'\n')
                .any(|line| line == local.as_bytes())),
            Err(HostError::NoServer(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn close(&self, pane: &PaneId) -> Result<(), HostError> {
        match self.pane_exists(pane)? {
            true => self.control(&["kill-pane", "-t", self.local(pane)?]).map(drop),
            false => Ok(()),
        }
    }

    fn focus(&self, pane: &PaneId) -> Result<(), HostError> {
        let local = self.local(pane)?;
        self.control(&["select-window", "-t", local])?;
        self.control(&["select-pane", "-t", local]).map(drop)
    }
}

/// The words of the tmux command that opens the pane, before [`literal`].
fn words(request: &Request, target: Option<OsString>) -> Result<Vec<OsString>, HostError> {
    let mut words: Vec<OsString> = match request.place {
        Place::Right => vec!["split-window".into(), "-h".into()],
        Place::Below => vec!["split-window".into(), "-v".into()],
        Place::Window => vec!["new-window".into()],
    };
    if request.focus == Focus::Unchanged {
        words.push("-d".into());
    }
    if let Some(target) = target {
        // A window's target is an index to take, unless it goes after that one.
        words.extend((request.place == Place::Window).then(|| "-a".into()));
        words.extend(["-t".into(), target]);
    }
    words.extend(["-P", "-F", "#{pane_id}"].map(OsString::from));
    for (name, value) in &request.env {
        if name.is_empty() || name.as_bytes().contains(&b'=') {
            return Err(HostError::Variable(name.clone()));
        }
        let mut pair = name.clone();
        pair.push("=");
        pair.push(value);
        words.extend(["-e".into(), pair]);
    }
    words.push("--".into());
    match request.argv.as_slice() {
        [] => return Err(HostError::NoProgram),
        [only] => words.extend(["/bin/sh".into(), "-c".into(), "exec \"$0\"".into(), only.clone()]),
        argv => words.extend_from_slice(argv),
    }
    Ok(words)
}

/// The word that tmux reads as this one: a `;` at the end would end the command.
fn literal(word: OsString) -> OsString {
    let mut bytes = word.into_vec();
    if bytes.last() == Some(&b';') {
        bytes.insert(bytes.len() - 1, b'\\');
    }
    OsString::from_vec(bytes)
}

fn is_pane(text: &str) -> bool {
    text.strip_prefix('%')
        .is_some_and(|n| !n.is_empty() && n.len() <= 10 && n.bytes().all(|b| b.is_ascii_digit()))
}

fn server_of(socket: &AbsPath) -> String {
    hex(&Sha256::digest(socket.as_path().as_os_str().as_bytes())[..4])
}

/// TMUX is `<socket path>,<pid>,<session>`; the path may hold commas itself.
fn socket_of(env: &Environ) -> Option<AbsPath> {
    let value = env.get(OsStr::new("TMUX"))?.as_bytes();
    let path = value.rsplitn(3, |b| *b == b',').nth(2)?;
    AbsPath::new(OsStr::from_bytes(path)).ok()
}

fn default_socket(around: &Surroundings<'_>) -> Option<AbsPath> {
    let folder = around.env.get(OsStr::new("TMUX_TMPDIR")).filter(|dir| !dir.is_empty());
    let folder = AbsPath::new(folder.map_or(OsStr::new("/tmp"), OsString::as_os_str)).ok()?;
    folder.join(format!("tmux-{}/default", around.uid)).ok()
}

#[cfg(test)]
mod tests;
