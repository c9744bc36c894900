//! Reads as much of a program file as tells whether this machine can run it (ELF-64, `man 5 elf`).

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// The `e_machine` numbers of the processors that Pinfold is built for, by Rust's name.
const MACHINES: &[(&str, u16)] = &[("x86_64", 62), ("aarch64", 183)];
const MAGIC: &[u8] = b"\x7fELF";
const PT_INTERP: u32 = 3;
/// Longer names of loaders than this are no names of loaders.
const LOADER_LIMIT: u64 = 4096;

/// What a file that somebody wants to run turns out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Image {
    /// A program for this processor; the loader that it asks for, if it is linked dynamically.
    Program { loader: Option<PathBuf> },
    /// No ELF file: mostly a script, or the text that npm leaves where a program belongs.
    Script,
    /// A program for something else, with the reason.
    Foreign(String),
}

/// Looks at the first bytes of `path`, and at where its program headers name the loader.
pub(super) fn read_image(path: &Path) -> io::Result<Image> {
    let mut file = File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(64).read_to_end(&mut head)?;
    if !head.starts_with(MAGIC) {
        return Ok(Image::Script);
    }
    match foreign(&head, std::env::consts::ARCH) {
        Some(reason) => Ok(Image::Foreign(reason)),
        None => Ok(match read_loader(&mut file, &head)? {
            Some(loader) => Image::Program { loader },
            None => Image::Foreign("its program headers are damaged".to_owned()),
        }),
    }
}

/// Why these first 64 bytes are no program for `processor`, or nothing.
fn foreign(head: &[u8], processor: &str) -> Option<String> {
    if head.len() < 64 {
        return Some("it is cut off".to_owned());
    }
    if head[4..6] != [2, 1] {
        return Some("it is not a 64-bit little-endian program".to_owned());
    }
    // 2 is a program at a fixed address, 3 one that can be placed anywhere (and also a library).
    if !matches!(number16(head, 16), Some(2 | 3)) {
        return Some("it is an object file, not a program".to_owned());
    }
    let wanted = MACHINES.iter().find(|(name, _)| *name == processor);
    match (number16(head, 18), wanted) {
        (Some(found), Some((_, number))) if found == *number => None,
        (Some(found), _) => {
            let name = MACHINES.iter().find(|(_, number)| *number == found);
            let name = name.map_or_else(|| format!("machine {found}"), |(name, _)| (*name).to_owned());
            Some(format!("it is for {name}, and this machine is {processor}"))
        }
        (None, _) => Some("it is cut off".to_owned()),
    }
}

/// The loader that the program headers name; `Some(None)` without one, `None` if the headers make no sense.
fn read_loader(file: &mut File, head: &[u8]) -> io::Result<Option<Option<PathBuf>>> {
    let (Some(table), Some(size), Some(count)) = (number64(head, 32), number16(head, 54), number16(head, 56)) else {
        return Ok(None);
    };
    let mut headers = Vec::new();
    file.seek(SeekFrom::Start(table))?;
    file.take(u64::from(size) * u64::from(count))
        .read_to_end(&mut headers)?;
    if size < 56 || headers.len() != usize::from(size) * usize::from(count) {
        return Ok(None);
    }
    let Some(entry) = headers
        .chunks_exact(usize::from(size))
        .find(|e| number32(e, 0) == Some(PT_INTERP))
    else {
        return Ok(Some(None));
    };
    let (Some(offset), Some(length)) = (number64(entry, 8), number64(entry, 32).filter(|n| *n <= LOADER_LIMIT)) else {
        return Ok(None);
    };
    let mut name = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(length).read_to_end(&mut name)?;
    name.truncate(name.iter().position(|b| *b == 0).unwrap_or(name.len()));
    Ok(Some(Some(PathBuf::from(OsString::from_vec(name)))))
}

fn number16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_le_bytes(*b))
}

fn number32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_le_bytes(*b))
}

fn number64(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sees_that_this_test_is_a_program_for_this_machine() {
        let Image::Program { loader } = read_image(&std::env::current_exe().unwrap()).unwrap() else {
            panic!("the running program was refused")
        };
        assert!(loader.is_none_or(|l| l.is_file()));
    }

    #[test]
    fn refuses_what_is_no_program_and_says_why() {
        let mut arm = vec![0; 64];
        arm[..6].copy_from_slice(b"\x7fELF\x02\x01");
        arm[16] = 2;
        arm[18] = 183;
        let mut object = arm.clone();
        object[16] = 1;
        let mut narrow = arm.clone();
        narrow[4] = 1;
        let table: &[(&[u8], &str)] = &[
            (b"\x7fELF\x02\x01", "it is cut off"),
            (&narrow, "it is not a 64-bit little-endian program"),
            (&object, "it is an object file, not a program"),
            (&arm, "it is for aarch64, and this machine is x86_64"),
        ];
        for (bytes, expected) in table {
            assert_eq!(
                foreign(bytes, "x86_64").as_deref(),
                Some(*expected),
                "{}",
                bytes.escape_ascii()
            );
        }
        assert_eq!(foreign(&arm, "aarch64"), None);
    }

    #[test]
    fn tells_scripts_and_damaged_programs() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        for text in ["#!/usr/bin/env node\n", "echo not installed\n", ""] {
            std::fs::write(&script, text).unwrap();
            assert_eq!(read_image(&script).unwrap(), Image::Script, "{text:?}");
        }
        let cut = dir.path().join("cut");
        let whole = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        std::fs::write(&cut, &whole[..64]).unwrap();
        assert_eq!(
            read_image(&cut).unwrap(),
            Image::Foreign("its program headers are damaged".into())
        );
    }
}
