//! The host replaces what is protected while a launch lives, as `git config` in another terminal does: the cover is put
//! back, the launch goes on, and it is told.

use crate::place::{Place, Started, eventually, finish};
use crate::protected::{git, repository};
use nix::sys::signal::Signal;
use std::path::Path;

/// A run that tells when it has begun and waits for a file.
fn waiting(place: &Place, script: &str) -> Started {
    let run = Started::new(&mut place.sh(
        &[],
        &format!("touch begun; while [ ! -e go ]; do sleep 0.02; done; {script}"),
    ));
    eventually("it has begun", || place.work.join("begun").exists());
    run
}

fn go(place: &Place) {
    // A moment for what the host did to be noticed; what must not be possible is tried for long enough inside.
    std::fs::write(place.work.join("go"), "").unwrap();
}

#[test]
fn the_host_may_configure_git_while_a_launch_lives() {
    let place = repository();
    let script = "
sleep 0.5
if echo '[alias] x = !id' 2>/dev/null >> .git/config; then echo WRITTEN; fi
if mv .git/config away 2>/dev/null; then echo MOVED; fi
git config user.name Eve 2>/dev/null && echo SET
git config remote.origin.url; git status --porcelain -uno && echo works";
    let run = waiting(&place, script);
    for number in 0..3 {
        git(
            &place,
            &["remote", "add", &format!("r{number}"), "https://code.example/x"],
        );
    }
    git(&place, &["config", "remote.origin.url", "https://code.example/y"]);
    go(&place);
    let ended = run.finish().expect(0);
    assert_eq!(ended.out(), "https://code.example/y\nworks\n");
    assert!(ended.err().contains("replaced from outside"), "{}", ended.err());
    assert!(
        !std::fs::read_to_string(place.work.join(".git/config"))
            .unwrap()
            .contains("!id")
    );
    // The control: without a launch the same is possible.
    finish(
        place
            .command("sh")
            .args(["-c", "echo >> .git/config && mv .git/config away"]),
    )
    .expect(0);
}

#[test]
fn an_editor_may_save_a_protected_file_while_a_launch_lives() {
    let place = repository();
    let run = waiting(&place, "sleep 0.5; cat .mcp.json; ! echo x 2>/dev/null > .mcp.json");
    // Moved away, then written anew, as some editors do.
    std::fs::rename(place.work.join(".mcp.json"), place.work.join(".mcp.json~")).unwrap();
    std::fs::write(place.work.join(".mcp.json"), "{\"new\": 1}").unwrap();
    go(&place);
    assert_eq!(run.finish().expect(0).out(), "{\"new\": 1}");
}

#[test]
fn who_opens_the_new_file_before_it_is_covered_ends_the_launch() {
    let place = repository();
    // Tries to open it for writing without a pause, and keeps what it gets.
    let body = "
import time
open('begun', 'w')
end = time.monotonic() + 20
while time.monotonic() < end:
    try:
        held = open('.git/config', 'r+')
        time.sleep(20)
    except OSError:
        pass";
    let run = Started::new(&mut place.run::<&str, _>(&[], &[crate::harness::PYTHON, "-c", body]));
    eventually("it has begun", || place.work.join("begun").exists());
    // Whoever is quicker: the file is covered and cannot be opened, or it was opened and the launch has ended.
    let mut replaced = 0;
    while replaced < 40 && Path::new("/proc").join(run.pid().to_string()).join("exe").exists() {
        git(&place, &["config", "user.email", &format!("{replaced}@example.org")]);
        replaced += 1;
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    run.signal(Signal::SIGTERM);
    let ended = run.finish();
    assert_ne!(ended.code(), 0);
    let caught = ended.err().contains("was opened before it was covered");
    assert!(caught || replaced == 40, "{}", ended.err());
}

#[test]
fn a_second_name_and_a_parked_descriptor_for_the_new_file_end_the_launch() {
    // What is won before the cover is back is written to later. The file that was there before can be won as well, and is
    // nobody's any more.
    let link = "
    os.link('.git/config', '.git/config2'); time.sleep(.05)
    if not os.path.samefile('.git/config2', '.git/config'): os.unlink('.git/config2'); raise OSError
    open('caught', 'w')
    time.sleep(1); open('.git/config2', 'a').write('[x]\\n')";
    let park = "
    f = open('.git/config', 'r+'); a, b = socket.socketpair(); socket.send_fds(a, [b'x'], [f.fileno()])
    own = os.fstat(f.fileno()).st_ino; f.close(); time.sleep(.05)
    if own != os.stat('.git/config').st_ino: raise OSError
    open('caught', 'w'); time.sleep(1)
    f = os.fdopen(socket.recv_fds(b, 1, 1)[1][0], 'a'); f.write('[x]\\n'); f.flush()";
    for way in [link, park] {
        let place = repository();
        let body = format!(
            "
import os, socket, time
open('begun', 'w')
end = time.monotonic() + 20
while time.monotonic() < end:
  try:
{way}
    open('won', 'w'); time.sleep(20)
  except OSError:
    pass"
        );
        let run = Started::new(&mut place.run::<&str, _>(&[], &[crate::harness::PYTHON, "-c", &body]));
        eventually("it has begun", || place.work.join("begun").exists());
        let lives = || Path::new("/proc").join(run.pid().to_string()).join("exe").exists();
        let caught = || place.work.join("caught").exists();
        let mut replaced = 0;
        while replaced < 40 && lives() && !caught() {
            git(&place, &["config", "user.email", &format!("{replaced}@example.org")]);
            replaced += 1;
            // The last one must stay, so that what was won is of the very file.
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        if caught() {
            eventually(&format!("the launch has ended: {way}"), || !lives());
        } else if lives() {
            run.signal(Signal::SIGTERM);
        }
        let ended = run.finish();
        assert_ne!(ended.code(), 0, "{way}");
        let told = ["second name", "written to after", "opened before"];
        let told = told.iter().any(|told| ended.err().contains(told));
        assert!(told || replaced == 40, "{way}: {}", ended.err());
    }
}

#[test]
fn a_protected_file_that_is_removed_outside_ends_the_launch() {
    let place = repository();
    let run = waiting(&place, "sleep 20");
    std::fs::remove_file(place.work.join(".mcp.json")).unwrap();
    go(&place);
    let ended = run.finish();
    assert_eq!(ended.code(), 126, "{}", ended.err());
    assert!(ended.err().contains(".mcp.json is not mounted"), "{}", ended.err());
}
