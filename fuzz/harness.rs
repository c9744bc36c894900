//! The loop: a seed of the corpus, changed a little or a lot, again and again until the time is over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Longest input.
const LONGEST: usize = 4096;

/// Numbers that look random and can be had again (splitmix64).
pub struct Random(u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Tries `target` until the time is over; what failed comes back as a text that says how to have it again.
pub fn fuzz(corpus: &str, target: impl Fn(&[u8], &mut Random) -> Result<(), String>) -> Result<(), String> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let fresh = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(1, |time| time.as_secs() ^ u64::from(time.subsec_nanos()) << 32)
    };
    let seed = number("PINFOLD_FUZZ_SEED").unwrap_or_else(fresh);
    let limit = Duration::from_secs(number("PINFOLD_FUZZ_SECONDS").unwrap_or(1));
    let seeds = read(corpus);
    assert!(!seeds.is_empty(), "fuzz/corpus/{corpus} is empty");
    let (begin, mut round) = (Instant::now(), 0_usize);
    let mut random = Random(seed);
    while begin.elapsed() < limit || round < 500 {
        let input = match seeds.get(round) {
            Some(seed) => seed.clone(),
            None => changed(&seeds, &mut random),
        };
        let outcome = catch_unwind(AssertUnwindSafe(|| target(&input, &mut random)));
        let problem = match outcome {
            Ok(Ok(())) => None,
            Ok(Err(problem)) => Some(problem),
            Err(panic) => Some(
                (panic.downcast_ref::<String>().cloned())
                    .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_else(|| "a panic".into()),
            ),
        };
        if let Some(problem) = problem {
            return Err(format!(
                "{corpus}: {problem}\nround {round}, again with PINFOLD_FUZZ_SEED={seed}\ninput: {}\n",
                input.escape_ascii()
            ));
        }
        round += 1;
    }
    eprintln!("{corpus}: {round} inputs from seed {seed}");
    Ok(())
}

/// The corpus in the order of its names, so that a seed means the same everywhere.
fn read(corpus: &str) -> Vec<Vec<u8>> {
    let folder = format!("{}/fuzz/corpus/{corpus}", env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn changed(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut input = random.one_of(seeds).clone();
    for _ in 0..=random.below(6) {
        change(&mut input, seeds, random);
    }
    input.truncate(LONGEST);
    input
}

/// One change: of a bit, a byte, a number, a piece, or the length.
fn change(input: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Random) {
    const TELLING: [u64; 9] = [0, 1, 2, 10, 127, 0xff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
    if input.is_empty() {
        input.push(random.next().to_le_bytes()[0]);
        return;
    }
    let at = random.below(input.len());
    match random.below(8) {
        0 => input[at] ^= 1 << random.below(8),
        1 => input[at] = random.next().to_le_bytes()[0],
        2 => input.truncate(at),
        3 => drop(input.drain(at..input.len().min(at + 1 + random.below(8)))),
        4 => {
            let piece = input[at..input.len().min(at + 1 + random.below(24))].to_vec();
            let to = random.below(input.len());
            input.splice(to..to, piece);
        }
        5 => {
            let other = random.one_of(seeds);
            let from = random.below(other.len() + 1);
            input.truncate(at);
            input.extend_from_slice(&other[from..]);
        }
        6 => {
            let number = random.one_of(&TELLING).to_ne_bytes();
            let length = *random.one_of(&[1, 2, 4, 8]);
            (input.iter_mut().skip(at))
                .zip(&number[..length])
                .for_each(|(byte, new)| *byte = *new);
        }
        _ => input.insert(at, random.next().to_le_bytes()[0]),
    }
}
