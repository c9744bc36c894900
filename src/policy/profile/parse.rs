//! Bytes of one profile file to the profile as written.

use super::keys::{Keys, Known};
use super::listed::{cache, mount, scratch, services, set_vars};
use super::reader::Reader;
use super::strict::value;
use super::{Grant, Guarded, Profile, ProfileError, Shape, Sockets, WorkdirAccess};
use crate::policy::frozen::{Access, Appearing, Datagrams, Note, Promise, Topic};
use serde_json::Value;
use std::path::Path;

/// One profile alone, and the names that it extends; nothing where it has no `extends`.
pub(super) struct Parsed {
    pub profile: Profile,
    pub extends: Option<Vec<String>>,
}

/// Parses one file. `name` is how it was asked for and names it in every origin.
pub(super) fn parse(name: &str, file: &Path, bytes: &[u8]) -> Result<Parsed, ProfileError> {
    let keys = Keys::parse()?;
    let value = value(file, bytes)?;
    let profile = Profile {
        name: name.to_owned(),
        chain: vec![name.to_owned()],
        ..Profile::default()
    };
    let mut parsed = Parsed { profile, extends: None };
    let root = Reader {
        keys,
        file,
        source: name,
        key: String::new(),
        value: &value,
    };
    if !value.is_object() {
        return Err(ProfileError::Wrong {
            file: file.to_owned(),
            key: "the whole".to_owned(),
            expected: "an object",
        });
    }
    section(&root, &mut parsed)?;
    Ok(parsed)
}

fn section(reader: &Reader<'_>, parsed: &mut Parsed) -> Result<(), ProfileError> {
    for (name, value) in reader.object()? {
        let key = if reader.key.is_empty() {
            name.clone()
        } else {
            format!("{}.{name}", reader.key)
        };
        let below = reader.at(key, value);
        // A dot in a name must not make it another section's key.
        let known = if name.contains('.') {
            Known::Unknown
        } else {
            reader.keys.look_up(&below.key)
        };
        match known {
            // As if it were not there: so other readers of the same files take it.
            _ if value.is_null() => {}
            Known::Used(name) => take(name, &below, parsed)?,
            Known::Section => section(&below, parsed)?,
            Known::Refused(reason) if asks(value) => return Err(below.refused(reason)),
            Known::Refused(_) => {}
            Known::Ignored(why) => parsed.profile.notes.push(Note {
                topic: Topic::Differs,
                subject: below.key.clone(),
                text: format!("not used: {why}"),
                origin: below.origin(None),
            }),
            Known::Unknown => {
                let nearest = below.keys.nearest(&below.key);
                return Err(ProfileError::UnknownKey {
                    file: below.file.to_owned(),
                    key: below.key,
                    nearest,
                });
            }
        }
    }
    Ok(())
}

/// Whether a value asks for anything at all.
fn asks(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => map.values().any(asks),
        _ => true,
    }
}

/// Takes the value of the key `name`, which may be written under another one.
fn take(name: &str, reader: &Reader<'_>, parsed: &mut Parsed) -> Result<(), ProfileError> {
    let profile = &mut parsed.profile;
    match name {
        "extends" => {
            let one = reader.value.is_string();
            parsed.extends = Some(if one {
                vec![reader.text()?.to_owned()]
            } else {
                reader.texts()?
            });
        }
        "meta.description" => profile.description = Some(reader.text()?.to_owned()),
        "workdir.access" => profile.workdir = Some(workdir(reader, profile)?),
        "filesystem.allow" => grant(reader, profile, Access::ReadWrite, Shape::Any)?,
        "filesystem.read" => grant(reader, profile, Access::Read, Shape::Any)?,
        "filesystem.allow_file" => grant(reader, profile, Access::ReadWrite, Shape::File)?,
        "filesystem.read_file" => grant(reader, profile, Access::Read, Shape::File)?,
        "filesystem.write" => write_only(reader, profile, Shape::Any)?,
        "filesystem.write_file" => write_only(reader, profile, Shape::File)?,
        "filesystem.deny" => profile.deny.extend(reader.entries("path")?),
        "filesystem.unix_socket" | "filesystem.unix_socket_bind" => sockets(reader, profile, Sockets::One)?,
        "filesystem.unix_socket_dir" => sockets(reader, profile, Sockets::Folder)?,
        "groups.include" => profile.groups.extend(reader.entries("name")?),
        "groups.exclude" => profile
            .excluded
            .extend(reader.entries("name")?.into_iter().map(|one| one.text)),
        "network.block" => profile.block = Some(reader.flag()?),
        "network.allow_domain" => profile.allow_domains.extend(reader.entries("name")?),
        "network.deny_domain" => profile.deny_domains.extend(reader.entries("name")?),
        "network.open_port" => profile.open_ports.extend(reader.ports()?),
        "network.listen_port" => profile.listen_ports = reader.ports()?,
        "linux.af_unix_mediation" => mediation(reader, profile)?,
        "environment.allow_vars" => profile.allow_vars = reader.entries("name")?,
        "environment.deny_vars" => profile.deny_vars = reader.entries("name")?,
        "environment.set_vars" => profile.set_vars = set_vars(reader)?,
        "pinfold.unix_datagrams" => datagrams(reader, profile)?,
        "pinfold.services" => profile.services = services(reader)?,
        "pinfold.allow_missing" => profile.allow_missing.extend(promises(reader)?),
        "pinfold.system" => profile.system = reader.entries("path")?,
        "pinfold.scratch" => profile.scratch = reader.list()?.iter().map(scratch).collect::<Result<_, _>>()?,
        "pinfold.scratch_size" => profile.scratch_size = Some(reader.bytes()?),
        "pinfold.mounts" => profile.mounts = reader.list()?.iter().map(mount).collect::<Result<_, _>>()?,
        "pinfold.caches" => profile.caches = reader.list()?.iter().map(cache).collect::<Result<_, _>>()?,
        "pinfold.caches_size" => profile.caches_size = Some(reader.bytes()?),
        "pinfold.protected" => profile.protected = reader.list()?.iter().map(guarded).collect::<Result<_, _>>()?,
        "pinfold.git.programs" => profile.git_programs = reader.entries("name")?,
        "pinfold.git.common_writable" => profile.common_writable = reader.entries("path")?,
        "pinfold.limits.memory" => profile.limits.memory = Some(reader.bytes()?),
        "pinfold.limits.cpu" => profile.limits.cpu = Some(reader.processors()?),
        "pinfold.limits.processes" => profile.limits.processes = Some(reader.number()?),
        "pinfold.limits.open_files" => profile.limits.open_files = Some(reader.number()?),
        "pinfold.limits.address_space" => profile.limits.address_space = Some(reader.bytes()?),
        // `$schema`, `meta.name`, `meta.version`, `meta.author`: for people and editors.
        _ => {
            reader.text()?;
        }
    }
    Ok(())
}

fn promises(reader: &Reader<'_>) -> Result<Vec<(Promise, crate::policy::Origin)>, ProfileError> {
    let one = |one: &Reader<'_>| match one.text()?.parse() {
        Ok(promise) => Ok((promise, one.origin(None))),
        Err(_) => Err(one.wrong("one of the promises P1 to P7, by number or name")),
    };
    reader.list()?.iter().map(one).collect()
}

fn workdir(reader: &Reader<'_>, profile: &mut Profile) -> Result<WorkdirAccess, ProfileError> {
    match reader.value.as_str() {
        Some("none") => Ok(WorkdirAccess::None),
        Some("write") => {
            readable_too(reader, profile);
            Ok(WorkdirAccess::Granted(Access::ReadWrite))
        }
        Some("read" | "readwrite") => reader.access().map(WorkdirAccess::Granted),
        _ => Err(reader.wrong("`none`, `read`, `write` or `readwrite`")),
    }
}

fn grant(reader: &Reader<'_>, profile: &mut Profile, access: Access, shape: Shape) -> Result<(), ProfileError> {
    let entries = reader.entries("path")?;
    profile
        .grants
        .extend(entries.into_iter().map(|entry| Grant { entry, access, shape }));
    Ok(())
}

/// A folder cannot be made writable and unreadable by a mount, so this is more than was asked for, and said.
fn write_only(reader: &Reader<'_>, profile: &mut Profile, shape: Shape) -> Result<(), ProfileError> {
    grant(reader, profile, Access::ReadWrite, shape)?;
    readable_too(reader, profile);
    Ok(())
}

fn readable_too(reader: &Reader<'_>, profile: &mut Profile) {
    profile.notes.push(Note {
        topic: Topic::Differs,
        subject: reader.key.clone(),
        text: "what may be written can also be read".to_owned(),
        origin: reader.origin(None),
    });
}

/// A protected path: `absent` says what happens to something that appears there, `refused` unless written.
fn guarded(reader: &Reader<'_>) -> Result<Guarded, ProfileError> {
    let absent = reader.value.get("absent").map(|value| {
        let absent = reader.at(format!("{}.absent", reader.key), value);
        match value.as_str() {
            Some("refused") => Ok(Appearing::Refused),
            Some("reported") => Ok(Appearing::Reported),
            _ => Err(absent.wrong("`refused` or `reported`")),
        }
    });
    Ok(Guarded {
        entry: reader.entry("reason")?,
        appearing: absent.transpose()?.unwrap_or(Appearing::Refused),
    })
}

fn sockets(reader: &Reader<'_>, profile: &mut Profile, which: Sockets) -> Result<(), ProfileError> {
    profile
        .sockets
        .extend(reader.entries("path")?.into_iter().map(|entry| (which, entry)));
    Ok(())
}

fn mediation(reader: &Reader<'_>, profile: &mut Profile) -> Result<(), ProfileError> {
    match reader.value.as_str() {
        Some("pathname") => {}
        Some("off") => profile.notes.push(Note {
            topic: Topic::Differs,
            subject: reader.key.clone(),
            text: "not used: sockets are always mediated".to_owned(),
            origin: reader.origin(None),
        }),
        _ => return Err(reader.wrong("`pathname` or `off`")),
    }
    Ok(())
}

fn datagrams(reader: &Reader<'_>, profile: &mut Profile) -> Result<(), ProfileError> {
    let wanted = reader.flag()?;
    profile.unix_datagrams = Some(if wanted {
        Datagrams::Mediated
    } else {
        Datagrams::Refused
    });
    if wanted {
        profile.notes.push(Note {
            topic: Topic::Differs,
            subject: reader.key.clone(),
            text: "Unix datagram sockets can be made; each sendmsg inside is decided and made by the supervisor, and slower"
                .to_owned(),
            origin: reader.origin(None),
        });
    }
    Ok(())
}
