//! Values that are lists of objects, or objects with free names.

use super::reader::Reader;
use super::{Cache, Entry, Mount, Mounted, ProfileError, Scratch, SetVariable};

pub(super) fn set_vars(reader: &Reader<'_>) -> Result<Vec<SetVariable>, ProfileError> {
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

pub(super) fn services(reader: &Reader<'_>) -> Result<Vec<Entry>, ProfileError> {
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

pub(super) fn scratch(reader: &Reader<'_>) -> Result<Scratch, ProfileError> {
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

pub(super) fn cache(reader: &Reader<'_>) -> Result<Cache, ProfileError> {
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

pub(super) fn mount(reader: &Reader<'_>) -> Result<Mount, ProfileError> {
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
