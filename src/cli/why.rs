//! `pinfold why`: whether a path, name or socket is allowed, and by which line.

use super::Outcome;
use super::args::Why;
use super::explain::tell_missing;
use super::output::{fail, say, say_json};
use crate::base::{AbsPath, Explain, Fault, Kind};
use crate::launch::run::DEFAULT_PROFILE;
use crate::launch::{Setting, Wish};
use crate::policy::{Host as _, HostKind, Question, why};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;

/// What was asked about is neither a path nor a name.
#[derive(Debug, thiserror::Error)]
#[error("{subject:?} is no path, host or socket: {problem}")]
struct NoQuestion {
    subject: OsString,
    problem: String,
}

impl Explain for NoQuestion {
    fn kind(&self) -> Kind {
        Kind::Config
    }
    fn hint(&self) -> Option<String> {
        Some("write a path with a slash in it, HOST[:PORT], unix:PATH or unix:@NAME".into())
    }
}

/// Exit 0 if something may be done with it, 1 if not, 2 if there is no answer.
pub fn run(args: Why) -> Outcome {
    let as_json = args.output.json;
    if let Some(named) = &args.last {
        return super::why_last::run(named.as_deref(), as_json);
    }
    Ok(answer(args).unwrap_or_else(|fault| {
        fail(&fault, as_json);
        ExitCode::from(2)
    }))
}

fn answer(args: Why) -> Result<ExitCode, Fault> {
    let setting = Setting::find()?;
    let question = question(args.subject.as_deref().unwrap_or_default(), &setting)?;
    let preview = Wish::from(args.grants).preview(DEFAULT_PROFILE, &setting)?;
    let answer = why(&preview.policy, &question);
    let allowed = answer.allowed();
    if args.output.json {
        say_json(&serde_json::json!({
            "allowed": allowed,
            "verdict": answer.verdict,
            "line": answer.line,
            "origin": answer.origin,
            "profile": preview.policy.profile,
            "agent_missing": preview.agent_missing.map(|missing| missing.problem),
        }));
    } else {
        say(&answer);
        preview.agent_missing.as_ref().into_iter().for_each(tell_missing);
    }
    Ok(if allowed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A subject with a slash, or that begins like a path, is one; the rest is the name of a host.
fn question(subject: &OsStr, setting: &Setting) -> Result<Question, NoQuestion> {
    let wrong = |problem: String| NoQuestion {
        subject: subject.to_owned(),
        problem,
    };
    let bytes = subject.as_bytes();
    if let Some(rest) = bytes.strip_prefix(b"unix:").filter(|rest| !rest.starts_with(b"@")) {
        return absolute(OsStr::from_bytes(rest), setting)
            .map(Question::Socket)
            .map_err(wrong);
    }
    let text = subject.to_str();
    if let Some(name) = text.and_then(host_of_url) {
        return Question::parse(&name).map_err(wrong);
    }
    // A name that stands in this folder is meant as what stands there.
    let is_here =
        bytes.iter().all(|byte| *byte != b':') && std::fs::symlink_metadata(setting.here.join(subject)).is_ok();
    let is_path = is_here || bytes.contains(&b'/') || matches!(bytes, b"." | b".." | b"~") || text.is_none();
    if !is_path || bytes.starts_with(b"unix:@") {
        return Question::parse(text.unwrap_or_default()).map_err(wrong);
    }
    let path = absolute(subject, setting).map_err(wrong)?;
    Ok(match setting.host.kind(&path) {
        Ok(HostKind::Socket) => Question::Socket(path),
        _ => Question::Path(path),
    })
}

/// `HOST:PORT` of an `http://` or `https://` address, without what is said about the user.
fn host_of_url(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let port = match scheme {
        "http" => "80",
        "https" => "443",
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let place = authority.rsplit_once('@').map_or(authority, |(_, place)| place);
    let has_port = place
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    Some(if has_port {
        place.to_owned()
    } else {
        format!("{place}:{port}")
    })
}

/// From the folder that this was started in, `~` is the home folder, and `..` goes up by name, as a person means it.
fn absolute(written: &OsStr, setting: &Setting) -> Result<AbsPath, String> {
    let bytes = written.as_bytes();
    let home = || setting.host.home().ok_or_else(|| "there is no home folder".to_owned());
    let path = match bytes.strip_prefix(b"~") {
        Some(b"") => home()?,
        Some(rest) if rest.starts_with(b"/") => {
            let mut whole = home()?.into_os_string().into_vec();
            whole.extend_from_slice(rest);
            PathBuf::from(OsString::from_vec(whole))
        }
        _ => setting.here.join(written),
    };
    AbsPath::new(plain(&path)).map_err(|error| error.to_string())
}

fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_the_web_is_its_host_and_port() {
        for (url, place) in [
            ("https://example.org", "example.org:443"),
            ("http://example.org/a:1", "example.org:80"),
            ("https://user:word@example.org:8443/x?y#z", "example.org:8443"),
            ("https://[2001:db8::1]/", "[2001:db8::1]:443"),
        ] {
            assert_eq!(host_of_url(url).as_deref(), Some(place));
        }
        assert_eq!(host_of_url("ftp://example.org"), None);
        assert_eq!(host_of_url("example.org"), None);
    }

    #[test]
    fn dots_are_taken_out_by_name() {
        assert_eq!(plain(Path::new("/a/./b/../c")), Path::new("/a/c"));
        assert_eq!(plain(Path::new("/../a")), Path::new("/a"));
    }
}
