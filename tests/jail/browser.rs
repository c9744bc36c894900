//! A headless Chromium by the recipe of docs/tools.md: its own sandbox off, since Pinfold's stands around it.

use crate::harness::{Attempt, skip};
use crate::place::{Ended, Place, finish};

const NAMES: [&str; 4] = [
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
];
const PAGE: &str = "<p id=p>old</p><script>document.getElementById('p').textContent = 'answer ' + 6 * 7</script>\n";

fn browser(place: &Place) -> Option<&'static str> {
    let is_there = |name: &&str| finish(place.command("sh").args(["-c", "command -v \"$0\"", name])).code() == 0;
    NAMES.into_iter().find(is_there)
}

fn recipe(place: &Place, browser: &str, rest: &str) -> Ended {
    std::fs::write(place.work.join("page.html"), PAGE).unwrap();
    let serve = "/usr/bin/python3 -m http.server -b 127.0.0.1 8123 >/dev/null 2>&1 &
                 until curl -so /dev/null http://127.0.0.1:8123/; do sleep 0.05; done";
    let script = format!("{serve}\n{browser} --headless --no-sandbox {rest} http://127.0.0.1:8123/page.html");
    finish(&mut place.sh(&["--block-net"], &script)).expect(0)
}

#[test]
fn chromium_shows_a_page_of_a_dev_server_and_takes_its_picture() {
    let place = Place::new();
    let Some(browser) = browser(&place) else {
        return skip("Chromium is not installed");
    };
    let page = recipe(&place, browser, "--dump-dom");
    assert!(page.out().contains("answer 42"), "{}\n{}", page.out(), page.err());
    recipe(&place, browser, "--screenshot=picture.png --window-size=640,480");
    let picture = std::fs::read(place.work.join("picture.png")).unwrap();
    assert_eq!(picture.get(..4), Some(&b"\x89PNG"[..]));
    // Width and height stand big-endian behind the first chunk's head.
    assert_eq!(picture.get(16..24), Some(&[0, 0, 2, 128, 0, 0, 1, 224][..]));
}

/// The recipe gives the browser no walls of its own, so the walls must be Pinfold's: its pages run under the same filter.
#[test]
fn what_chromium_starts_stands_behind_the_same_walls() {
    let place = Place::new();
    let Some(browser) = browser(&place) else {
        return skip("Chromium is not installed");
    };
    let secret = place.secrets.join("key").display().to_string();
    let read = format!("{browser} --headless --no-sandbox --allow-file-access-from-files --dump-dom file://{secret}");
    let outside = finish(place.command("sh").args(["-c", &read]));
    assert!(outside.out().contains("the secret key"), "{}", outside.err());
    let inside = finish(&mut place.sh(&["--block-net"], &read));
    assert!(!inside.out().contains("the secret key"), "{}", inside.out());
    let shared = Attempt::python("s = os.statvfs('/dev/shm'); s.f_bsize * s.f_blocks >= 1 << 29 or deny('ENOSPC')");
    place.allows(&[], &shared);
}
