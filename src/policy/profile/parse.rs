//! Bytes of one profile file to the profile as written.

use super::keys::{Keys, Known};
use super::reader::Reader;
use super::{
    Cache, Entry, Grant, Mount, Mounted, Profile, ProfileError, Scratch, SetVariable, Shape, Sockets, WorkdirAccess,
};
use crate::policy::frozen::{Access, Note, Topic};
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
    let value: Value = serde_json::from_slice(bytes).map_err(|error| ProfileError::NotJson {
        file: file.to_owned(),
        line: error.line(),
        column: error.column(),
        text: reason(&error),
    })?;
    let profile = Profile {
        name: name.to_owned(),
        chain: vec![name.to_owned()],
        ..Profile::default()
    };
    let mut parsed = Parsed { profile, extends: None };
    let root = Reader {
        keys: &keys,
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

/// serde_json's sentence without the place, which stands in its own fields.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ")
        .map(|(front, _)| front.to_owned())
        .unwrap_or(text)
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
            Known::Used => take(&below, parsed)?,
            Known::Section => section(&below, parsed)?,
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

fn take(reader: &Reader<'_>, parsed: &mut Parsed) -> Result<(), ProfileError> {
    let profile = &mut parsed.profile;
    match reader.key.as_str() {
        "extends" => {
            let one = reader.value.is_string();
            parsed.extends = Some(if one {
                vec![reader.text()?.to_owned()]
            } else {
                reader.texts()?
            });
        }
        "meta.description" => profile.description = Some(reader.text()?.to_owned()),
        "workdir.access" => profile.workdir = Some(workdir(reader)?),
        "filesystem.allow" => grant(reader, profile, Access::ReadWrite, Shape::Any)?,
        "filesystem.read" => grant(reader, profile, Access::Read, Shape::Any)?,
        "filesystem.allow_file" => grant(reader, profile, Access::ReadWrite, Shape::File)?,
        "filesystem.read_file" => grant(reader, profile, Access::Read, Shape::File)?,
        "filesystem.write" => write_only(reader, profile, Shape::Any)?,
        "filesystem.write_file" => write_only(reader, profile, Shape::File)?,
        "filesystem.deny" => profile.deny = reader.entries("path")?,
        "filesystem.unix_socket" | "filesystem.unix_socket_bind" => sockets(reader, profile, Sockets::One)?,
        "filesystem.unix_socket_dir" => sockets(reader, profile, Sockets::Folder)?,
        "network.block" => profile.block = Some(reader.flag()?),
        "network.allow_domain" => profile.allow_domains = reader.entries("name")?,
        "network.deny_domain" => profile.deny_domains = reader.entries("name")?,
        "network.open_port" => profile.open_ports = reader.ports()?,
        "network.listen_port" => profile.listen_ports = reader.ports()?,
        "linux.af_unix_mediation" => mediation(reader, profile)?,
        "environment.allow_vars" => profile.allow_vars = reader.entries("name")?,
        "environment.deny_vars" => profile.deny_vars = reader.entries("name")?,
        "environment.set_vars" => profile.set_vars = set_vars(reader)?,
        "pinfold.services" => profile.services = services(reader)?,
        "pinfold.system" => profile.system = reader.entries("path")?,
        "pinfold.scratch" => profile.scratch = reader.list()?.iter().map(scratch).collect::<Result<_, _>>()?,
        "pinfold.scratch_size" => profile.scratch_size = Some(reader.bytes()?),
        "pinfold.mounts" => profile.mounts = reader.list()?.iter().map(mount).collect::<Result<_, _>>()?,
        "pinfold.caches" => profile.caches = reader.list()?.iter().map(cache).collect::<Result<_, _>>()?,
        "pinfold.caches_size" => profile.caches_size = Some(reader.bytes()?),
        "pinfold.protected" => profile.protected = reader.entries("reason")?,
        "pinfold.git.common_writable" => profile.common_writable = reader.entries("path")?,
        "pinfold.limits.processes" => profile.limits.processes = Some(reader.number()?),
        "pinfold.limits.open_files" => profile.limits.open_files = Some(reader.number()?),
        "pinfold.limits.address_space" => profile.limits.address_space = Some(reader.bytes()?),
        // `meta.name`, `meta.version`, `meta.author`: for people.
        _ => {
            reader.text()?;
        }
    }
    Ok(())
}

fn workdir(reader: &Reader<'_>) -> Result<WorkdirAccess, ProfileError> {
    match reader.value.as_str() {
        Some("none") => Ok(WorkdirAccess::None),
        Some("read" | "readwrite") => reader.access().map(WorkdirAccess::Granted),
        _ => Err(reader.wrong("`none`, `read` or `readwrite`")),
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
    profile.notes.push(Note {
        topic: Topic::Differs,
        subject: reader.key.clone(),
        text: "what may be written can also be read".to_owned(),
        origin: reader.origin(None),
    });
    Ok(())
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

fn set_vars(reader: &Reader<'_>) -> Result<Vec<SetVariable>, ProfileError> {
    let mut variables = Vec::new();
    for (name, value) in reader.object()? {
        let one = reader.at(format!("{}.{name}", reader.key), value);
        if name.is_empty() || name.contains(['=', '\0']) {
            return Err(one.wrong("under the name of a variable"));
        }
        let value = value
            .as_str()
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| one.wrong("a string"))?;
        variables.push(SetVariable {
            name: name.clone(),
            value: value.to_owned(),
            origin: one.origin(None),
        });
    }
    Ok(variables)
}

fn services(reader: &Reader<'_>) -> Result<Vec<Entry>, ProfileError> {
    let mut services = Vec::new();
    for (name, value) in reader.object()? {
        let one = reader.at(format!("{}.{name}", reader.key), value);
        let text = format!("{name}={}", one.text()?);
        services.push(Entry {
            text,
            optional: false,
            origin: one.origin(None),
        });
    }
    Ok(services)
}

fn scratch(reader: &Reader<'_>) -> Result<Scratch, ProfileError> {
    let fields = reader.fields("scratch")?;
    let at = fields.get("at").ok_or_else(|| reader.wrong("an object with `at`"))?;
    let why = fields.get("why").map(|why| why.text()).transpose()?;
    Ok(Scratch {
        at: Entry {
            text: at.text()?.to_owned(),
            optional: false,
            origin: reader.origin(why.map(str::to_owned)),
        },
        size: fields.get("size").map(|size| size.bytes()).transpose()?,
        shared: fields
            .get("shared")
            .map(|shared| shared.flag())
            .transpose()?
            .unwrap_or(false),
    })
}

fn cache(reader: &Reader<'_>) -> Result<Cache, ProfileError> {
    let fields = reader.fields("cache")?;
    let at = fields
        .get("path")
        .ok_or_else(|| reader.wrong("an object with `path`"))?;
    let why = fields.get("why").map(|why| why.text()).transpose()?;
    let from = fields.get("from").map(|from| from.text()).transpose()?;
    Ok(Cache {
        at: Entry {
            text: at.text()?.to_owned(),
            optional: true,
            origin: reader.origin(why.map(str::to_owned)),
        },
        from: from.map(str::to_owned),
    })
}

fn mount(reader: &Reader<'_>) -> Result<Mount, ProfileError> {
    const SHAPE: &str = "an object with `at` and either `from` and `access`, or `entries_of`";
    let fields = reader.fields("mount")?;
    let flag = |name: &str| Ok(fields.get(name).map(|flag| flag.flag()).transpose()?.unwrap_or(false));
    let texts = |name: &str| fields.get(name).map(|names| plain_names(&names)).transpose();
    let at = fields.get("at").ok_or_else(|| reader.wrong(SHAPE))?;
    let why = fields.get("why").map(|why| why.text()).transpose()?;
    let origin = reader.origin(why.map(str::to_owned));
    let (path_only, entries_only) = (["from", "access", "create"], ["only", "except", "empty_files"]);
    let mounted = match (fields.get("from"), fields.get("entries_of")) {
        (Some(from), None) if !entries_only.iter().any(|name| fields.has(name)) => Mounted::Path {
            from: from.text()?.to_owned(),
            access: fields.get("access").ok_or_else(|| reader.wrong(SHAPE))?.access()?,
            create: flag("create")?,
        },
        (None, Some(of)) if !path_only.iter().any(|name| fields.has(name)) => {
            if fields.has("only") && fields.has("except") {
                return Err(reader.wrong("an object with `only` or `except`, not both"));
            }
            Mounted::Entries {
                of: of.text()?.to_owned(),
                only: texts("only")?,
                except: texts("except")?.unwrap_or_default(),
                empty_files: texts("empty_files")?.unwrap_or_default(),
            }
        }
        _ => return Err(reader.wrong(SHAPE)),
    };
    Ok(Mount {
        at: Entry {
            text: at.text()?.to_owned(),
            optional: flag("optional")?,
            origin,
        },
        mounted,
    })
}

fn plain_names(reader: &Reader<'_>) -> Result<Vec<String>, ProfileError> {
    let names = reader.texts()?;
    if names
        .iter()
        .any(|name| name.contains('/') || name == "." || name == "..")
    {
        return Err(reader.wrong("a list of file names without a slash"));
    }
    Ok(names)
}
