//! Small values that must not be mixed up.

use rand::RngExt as _;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::num::{NonZeroI32, NonZeroU16};

/// A process id as the host's PID namespace numbers it; always positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i32", into = "i32")]
pub struct Pid(NonZeroI32);

impl Pid {
    /// A positive number, or nothing.
    pub fn new(raw: i32) -> Option<Pid> {
        NonZeroI32::new(raw).filter(|n| n.get() > 0).map(Pid)
    }
    /// The number for a system call.
    pub fn get(self) -> i32 {
        self.0.get()
    }
}

impl TryFrom<i32> for Pid {
    type Error = &'static str;
    fn try_from(raw: i32) -> Result<Self, Self::Error> {
        Pid::new(raw).ok_or("a process id is a positive number")
    }
}

impl From<Pid> for i32 {
    fn from(pid: Pid) -> i32 {
        pid.get()
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A TCP port, 1 to 65535.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct Port(NonZeroU16);

impl Port {
    /// A non-zero port, or nothing.
    pub fn new(raw: u16) -> Option<Port> {
        NonZeroU16::new(raw).map(Port)
    }
    /// The number in host byte order.
    pub fn get(self) -> u16 {
        self.0.get()
    }
}

impl TryFrom<u16> for Port {
    type Error = &'static str;
    fn try_from(raw: u16) -> Result<Self, Self::Error> {
        Port::new(raw).ok_or("a port is a number from 1 to 65535")
    }
}

impl std::str::FromStr for Port {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        digits
            .then(|| text.parse().ok().and_then(Port::new))
            .flatten()
            .ok_or("a port is a number from 1 to 65535")
    }
}

impl From<Port> for u16 {
    fn from(port: Port) -> u16 {
        port.get()
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One launch: twelve lower-case hexadecimal digits, never used twice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LaunchId(String);

impl LaunchId {
    /// A fresh one from the system's generator.
    pub fn fresh() -> LaunchId {
        LaunchId(hex(&rand::rng().random::<[u8; 6]>()))
    }
    /// The digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for LaunchId {
    type Error = &'static str;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        let valid = text.len() == 12 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        valid
            .then_some(LaunchId(text))
            .ok_or("a launch id is twelve lower-case hexadecimal digits")
    }
}

impl std::str::FromStr for LaunchId {
    type Err = &'static str;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.to_owned().try_into()
    }
}

impl From<LaunchId> for String {
    fn from(id: LaunchId) -> String {
        id.0
    }
}

impl fmt::Display for LaunchId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A pane as its host names it, made unique over hosts, for example `tmux:default:%3`. Opaque; never parsed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PaneId(String);

impl PaneId {
    /// Takes any non-empty text.
    pub fn new(text: impl Into<String>) -> Option<PaneId> {
        Some(text.into()).filter(|t| !t.is_empty()).map(PaneId)
    }
    /// The stand-in for a pane that the host has yet to open for this launch.
    pub fn of_launch(launch: &LaunchId) -> PaneId {
        PaneId(format!("launch:{launch}"))
    }
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PaneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A password: 64 hexadecimal digits, 256 random bits. It prints as dots and is never serialised.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
    /// A fresh one from the system's generator.
    pub fn fresh() -> Secret {
        Secret(hex(&rand::rng().random::<[u8; 32]>()))
    }
    /// The digits, for an environment or a request; never for argv or a log.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Lower-case hexadecimal digits, two a byte.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
