//! This terminal as the only pane.

use super::error::HostError;
use super::{Host, Opened, Request, Surroundings};
use crate::base::PaneId;
use std::io::IsTerminal as _;
use std::os::fd::AsFd;
use std::os::unix::fs::FileTypeExt as _;
use std::path::PathBuf;

const NAME: &str = "terminal";
const PREFIX: &str = "tty:";

/// The terminal that standard input, output and error lead to; pane `tty:/dev/pts/N`.
#[derive(Debug)]
pub struct Terminal {
    device: Option<PathBuf>,
}

impl Terminal {
    /// The terminal of this process, if input and output are one: an agent needs both.
    pub fn new(_: &Surroundings<'_>) -> Terminal {
        let (input, output) = (std::io::stdin(), std::io::stdout());
        let device = (input.is_terminal() && output.is_terminal())
            .then(|| {
                device(input)
                    .or_else(|| device(output))
                    .or_else(|| device(std::io::stderr()))
            })
            .flatten();
        Terminal { device }
    }

    fn pane(&self) -> Option<PaneId> {
        self.device
            .as_ref()?
            .to_str()
            .and_then(|device| PaneId::new(format!("{PREFIX}{device}")))
    }
}

/// The device's own name. `/dev/tty` is a name that every terminal has.
fn device(terminal: impl AsFd) -> Option<PathBuf> {
    nix::unistd::ttyname(terminal)
        .ok()
        .filter(|name| name != std::path::Path::new("/dev/tty"))
}

impl Host for Terminal {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_around(&self) -> bool {
        self.device.is_some()
    }

    fn here(&self) -> Option<PaneId> {
        self.pane()
    }

    fn open_pane(&self, request: &Request) -> Result<Opened, HostError> {
        if request.argv.is_empty() {
            return Err(HostError::NoProgram);
        }
        self.pane().map(Opened::Here).ok_or(HostError::NoTerminal)
    }

    fn pane_exists(&self, pane: &PaneId) -> Result<bool, HostError> {
        let foreign = || HostError::Foreign {
            host: NAME,
            pane: pane.clone(),
        };
        let device = pane.as_str().strip_prefix(PREFIX).ok_or_else(foreign)?;
        Ok(std::fs::metadata(device).is_ok_and(|found| found.file_type().is_char_device()))
    }

    fn close(&self, _: &PaneId) -> Result<(), HostError> {
        Err(HostError::Unsupported {
            host: NAME,
            verb: "close",
        })
    }

    fn focus(&self, _: &PaneId) -> Result<(), HostError> {
        Err(HostError::Unsupported {
            host: NAME,
            verb: "focus",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::AbsPath;
    use crate::host::{Focus, Place};

    fn request(argv: &[&str]) -> Request {
        Request {
            argv: argv.iter().map(Into::into).collect(),
            folder: AbsPath::root(),
            env: Vec::new(),
            place: Place::Right,
            focus: Focus::New,
        }
    }

    #[test]
    fn is_the_device_of_its_terminal() {
        let pty = nix::pty::openpty(None, None).unwrap();
        let terminal = Terminal {
            device: device(&pty.slave),
        };
        let pane = terminal.here().unwrap();
        assert!(pane.as_str().starts_with("tty:/dev/pts/"), "{pane}");
        assert_eq!(
            terminal.open_pane(&request(&["a"])).unwrap(),
            Opened::Here(pane.clone())
        );
        assert!(terminal.pane_exists(&pane).unwrap());
        assert!(
            !terminal
                .pane_exists(&PaneId::new("tty:/dev/pts/987654").unwrap())
                .unwrap()
        );
        assert!(matches!(terminal.open_pane(&request(&[])), Err(HostError::NoProgram)));
    }

    #[test]
    fn without_a_terminal_it_says_what_to_do() {
        use crate::base::Explain as _;
        let terminal = Terminal {
            device: device(std::fs::File::open("/dev/null").unwrap()),
        };
        assert!(!terminal.is_around());
        let error = terminal.open_pane(&request(&["a"])).unwrap_err();
        assert!(matches!(error, HostError::NoTerminal));
        assert!(error.hint().unwrap().contains("pinfold run"));
    }

    #[test]
    fn knows_no_panes_of_others() {
        let terminal = Terminal { device: None };
        let pane = PaneId::new("tmux:00000000:%1").unwrap();
        assert!(matches!(terminal.pane_exists(&pane), Err(HostError::Foreign { .. })));
    }
}
