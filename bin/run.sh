#!/bin/sh
# Sets Pinfold up and runs it. Works from any folder, through links, and in paths with spaces.
#
#   bin/run.sh demo [option…]    build if needed, then show OpenCode in its two sandboxes and what it cannot do
#   bin/run.sh test [filter…]    get what the tests need, then run the whole suite
#   bin/run.sh bench             build for speed and print the measurements as a table
#   bin/run.sh VERB [argument…]  run pinfold with that verb
set -eu

# Everything that is not pinned by Cargo.lock is pinned here.
OPENCODE_VERSION=1.18.33
RUST_VERSION=1.85
PNPM_VERSION=9.15.9
BUN_VERSION=1.4.5
UV_VERSION=0.13.9
TEST_USER=pinfold-test
# command:Debian package that brings it
TEST_NEEDS='bwrap:bubblewrap tmux:tmux git:git curl:curl python3:python3 unshare:util-linux npm:npm cc:gcc make:make gpg-agent:gnupg ssh-agent:openssh-client openssl:openssl /usr/bin/pip3:python3-pip'
# Any of these is a browser for the tests; Debian calls the smallest one so.
BROWSERS='chromium-headless-shell chromium chromium-browser google-chrome'

say() { printf 'run.sh: %s\n' "$*" >&2; }
fail() { say "$*"; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The folder above the one that holds this script, whatever links lead to it.
package_folder() {
    script=$1
    while [ -L "$script" ]; do
        link=$(readlink -- "$script")
        case $link in
            /*) script=$link ;;
            *) script=$(dirname -- "$script")/$link ;;
        esac
    done
    CDPATH='' cd -- "$(dirname -- "$script")/.." && pwd -P
}

root=$(package_folder "$0")
case ${CARGO_TARGET_DIR:-} in
    '') target=$root/target ;;
    /*) target=$CARGO_TARGET_DIR ;;
    *) target=$root/$CARGO_TARGET_DIR ;;
esac

need_cargo() {
    # A program that was started from a desktop or a multiplexer often lacks the PATH of a login shell.
    if ! have cargo && [ -n "${HOME:-}" ] && [ -x "$HOME/.cargo/bin/cargo" ]; then
        PATH=$HOME/.cargo/bin:$PATH
        export PATH
    fi
    have cargo || fail "cargo is missing; install Rust $RUST_VERSION or newer from https://rustup.rs and try again"
}

# Crates are fetched in a step of their own, so that a missing network is told from a build error.
fetch_crates() {
    host=$(rustc -vV | sed -n 's/^host: //p')
    (cd "$root" && cargo fetch --quiet --locked --target "$host") && return
    say "the crates in Cargo.lock could not be fetched (see above); they are needed once, from the network or a mirror"
    fail 'behind a proxy, set https_proxy; without any network, run `cargo vendor` elsewhere and copy the folder'
}

is_current() {
    [ -x "$1" ] || return 1
    for part in src profiles Cargo.toml Cargo.lock build.rs; do
        [ -e "$root/$part" ] || continue
        newer=$(find "$root/$part" -newer "$1" -print | head -n 1)
        [ -z "$newer" ] || return 1
    done
}

# Sets `binary` to a program that matches the sources; builds it where it must.
build_binary() {
    if [ -n "${PINFOLD_BINARY:-}" ]; then
        binary=$PINFOLD_BINARY
        [ -x "$binary" ] || fail "PINFOLD_BINARY names $binary, which cannot be run"
        return
    fi
    binary=$root/bin/pinfold
    if [ ! -f "$root/Cargo.toml" ]; then
        [ -x "$binary" ] || fail "there are no sources to build from, and no $binary"
        return
    fi
    binary=$target/release/pinfold
    is_current "$binary" && return
    need_cargo
    fetch_crates
    say 'building pinfold; the first time takes a few minutes'
    (cd "$root" && cargo build --release --locked --bin pinfold) || fail 'the build failed; the compiler says why above'
}

# ---- the verbs of an installed Pinfold

# A text as the inside of a JSON string.
json_text() { printf '%s' "$1" | tr -d '\000-\037\177' | sed 's/\\/\\\\/g; s/"/\\"/g'; }

run_verb() {
    if [ -n "${PINFOLD_BINARY:-}" ]; then
        set -- "$PINFOLD_BINARY" "$@"
    elif [ -x "$root/bin/pinfold" ]; then
        set -- "$root/bin/pinfold" "$@"
    else
        set -- "$target/release/pinfold" "$@"
    fi
    if [ -f "$1" ] && [ -x "$1" ]; then
        exec "$@"
    fi
    message='the pinfold binary is missing; build it with: cargo build --release --locked'
    if [ -n "${HERDR_PLUGIN_ACTION_ID:-}" ]; then
        # Scripts read this line first; its shape is the one that every action prints.
        printf 'HERDR_SANDBOX_RESULT: {"schemaVersion":1,"plugin":"pinfold.sandbox","action":"%s","ok":false,"errorKind":"startup","message":"%s"}\n' \
            "$(json_text "$HERDR_PLUGIN_ACTION_ID")" "$(json_text "$message")"
    fi
    say "$message (in $root; looked for $1)"
    # A pane closes with its program: leave time to read.
    if [ -n "${HERDR_PLUGIN_ENTRYPOINT_ID:-}" ] && [ -t 1 ]; then sleep 8; fi
    exit 127
}

# ---- what the tests need

missing_packages() {
    missing=''
    for pair in $TEST_NEEDS; do
        have "${pair%%:*}" && continue
        case " $missing " in *" ${pair#*:} "*) ;; *) missing="$missing ${pair#*:}" ;; esac
    done
    # A compiler without its headers cannot link.
    case " $missing " in *' gcc '*) missing="$missing libc6-dev" ;; esac
    missing=${missing# }
}

install_packages() {
    missing_packages
    [ -n "$missing" ] || return 0
    command="apt-get install -y --no-install-recommends $missing"
    if [ "$(id -u)" -ne 0 ]; then
        say "the tests need Debian packages that are missing: $missing"
        fail "install them with: sudo $command"
    fi
    have apt-get || fail "the tests need $missing, and this is no Debian or Ubuntu; install them with the system's own tool"
    say "installing $missing"
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    apt-get -qq -o DPkg::Lock::Timeout=120 update || fail 'no package lists; is there a network, and does /etc/apt name a mirror that answers?'
    # shellcheck disable=SC2086 # a list of package names
    apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends $missing >/dev/null ||
        fail "could not install them; try by hand: $command"
}

need_components() {
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && return
    have rustup || fail 'cargo fmt or cargo clippy is missing; install the packages rustfmt and rust-clippy of your Rust'
    if [ "$(id -u)" -ne 0 ]; then fail 'install them with: rustup component add rustfmt clippy'; fi
    rustup component add rustfmt clippy || fail 'could not get rustfmt and clippy; is there a network?'
}

# The real OpenCode, from its registry package, below the build folder and nowhere else.
install_opencode() {
    case $(uname -m) in
        x86_64) package=opencode-linux-x64 ;;
        aarch64) package=opencode-linux-arm64 ;;
        *) fail "OpenCode has no build for $(uname -m)" ;;
    esac
    folder=$target/opencode
    PINFOLD_TEST_OPENCODE=$folder/node_modules/$package/bin/opencode
    export PINFOLD_TEST_OPENCODE
    if [ -x "$PINFOLD_TEST_OPENCODE" ] &&
        grep -q "\"version\": *\"$OPENCODE_VERSION\"" "$folder/node_modules/$package/package.json"; then
        return
    fi
    say "installing $package $OPENCODE_VERSION into $folder (about 60 MB)"
    mkdir -p "$folder"
    npm install --prefix "$folder" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error "$package@$OPENCODE_VERSION" >&2 ||
        fail "npm could not install it; is there a network? By hand: npm install --prefix '$folder' $package@$OPENCODE_VERSION"
    [ -x "$PINFOLD_TEST_OPENCODE" ] || fail "npm installed no $PINFOLD_TEST_OPENCODE"
}

# Package managers that no Debian package brings, from their registry packages, below the build folder and nowhere else.
install_tools() {
    case $(uname -m) in
        x86_64) bun=bun-linux-x64 ;;
        *) bun=bun-linux-aarch64 ;;
    esac
    PINFOLD_TEST_TOOLS=$target/tools
    export PINFOLD_TEST_TOOLS
    versions="pnpm $PNPM_VERSION, $bun $BUN_VERSION, uv $UV_VERSION"
    [ "$(cat "$PINFOLD_TEST_TOOLS/versions" 2>/dev/null)" = "$versions" ] && return
    say "installing $versions into $PINFOLD_TEST_TOOLS (about 60 MB)"
    rm -rf -- "$PINFOLD_TEST_TOOLS"
    mkdir -p "$PINFOLD_TEST_TOOLS/bin"
    npm install --prefix "$PINFOLD_TEST_TOOLS" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error \
        "pnpm@$PNPM_VERSION" "@oven/$bun@$BUN_VERSION" >&2 || fail 'npm could not install them; is there a network?'
    /usr/bin/pip3 install --quiet --disable-pip-version-check --root-user-action=ignore \
        --target "$PINFOLD_TEST_TOOLS/python" "uv==$UV_VERSION" >&2 || fail 'pip could not install uv; is there a network?'
    ln -s ../node_modules/pnpm/bin/pnpm.cjs "$PINFOLD_TEST_TOOLS/bin/pnpm"
    ln -s "../node_modules/@oven/$bun/bin/bun" "$PINFOLD_TEST_TOOLS/bin/bun"
    ln -s ../python/bin/uv "$PINFOLD_TEST_TOOLS/bin/uv"
    chmod -R a+rX "$PINFOLD_TEST_TOOLS"
    chmod a+x "$PINFOLD_TEST_TOOLS"/node_modules/pnpm/bin/pnpm.cjs "$PINFOLD_TEST_TOOLS/node_modules/@oven/$bun/bin/bun"
    printf '%s\n' "$versions" >"$PINFOLD_TEST_TOOLS/versions"
}

# Not every system has a browser to install in this way: where none is, its tests say that they were skipped.
install_browser() {
    for browser in $BROWSERS; do
        have "$browser" && return
    done
    if [ "$(id -u)" -ne 0 ] || ! have apt-get; then
        say "no browser (one of $BROWSERS): its tests are skipped"
        return
    fi
    browser=${BROWSERS%% *}
    say "installing $browser (about 70 MB)"
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    apt-get -qq -o DPkg::Lock::Timeout=120 update &&
        apt-get -qq -o DPkg::Lock::Timeout=120 install -y --no-install-recommends "$browser" >/dev/null ||
        say "could not install it: the browser's tests are skipped"
}

need_test_user() {
    [ "$(id -u)" -eq 0 ] || return 0
    id -u "$TEST_USER" >/dev/null 2>&1 && return
    say "making the user $TEST_USER, so that confinement is tested as an ordinary user too"
    useradd -m -s /bin/sh "$TEST_USER" || fail "could not make the user; try by hand: useradd -m $TEST_USER"
}

# ---- the steps of a test run

passed=0
failed=''

step() {
    name=$1
    shift
    printf '\n== %s\n' "$name"
    if (cd "$root" && "$@"); then passed=$((passed + 1)); else failed="$failed${failed:+, }$name"; fi
}

# Prints where cargo left the tests of that name and the program that they run.
built_for() {
    cargo test --quiet --locked --test "$1" --no-run --message-format=json | python3 -c '
import json, sys
built = {}
for line in sys.stdin:
    message = json.loads(line) if line.startswith("{") else {}
    if message.get("executable"):
        built[message["target"]["name"], message["target"]["kind"][0]] = message["executable"]
print(built[sys.argv[1], "test"])
print(built["pinfold", "bin"])' "$1"
}

# Tests once more, from a place that an ordinary user can read, with nothing of root in the environment.
as_ordinary_user() {
    name=$1
    shift
    paths=$(built_for "$name") || return 1
    place=$(mktemp -d /var/tmp/pinfold-test.XXXXXX) || return 1
    trap 'rm -rf -- "$place"' EXIT
    trap 'exit 1' HUP INT TERM
    chmod 755 "$place" || return 1
    install -m 755 -- "$(printf '%s\n' "$paths" | sed -n 1p)" "$place/$name" || return 1
    install -m 755 -- "$(printf '%s\n' "$paths" | sed -n 2p)" "$place/pinfold" || return 1
    # What was installed for the tests may lie where only root gets.
    install -m 755 -- "$PINFOLD_TEST_OPENCODE" "$place/opencode" || return 1
    if [ "$name" = jail ]; then
        cp -R -- "$PINFOLD_TEST_TOOLS" "$place/tools" || return 1
    fi
    install -d -m 700 -o "$TEST_USER" "$place/tmp" || return 1
    home=$(getent passwd "$TEST_USER" | cut -d: -f6)
    cd "$place/tmp" || return 1
    with_signals runuser -u "$TEST_USER" -- env -i HOME="$home" USER="$TEST_USER" LOGNAME="$TEST_USER" SHELL=/bin/sh \
        PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 TERM=xterm-256color TMPDIR="$place/tmp" \
        JAIL_MUST_WORK="${JAIL_MUST_WORK:-}" PINFOLD_BIN="$place/pinfold" \
        PINFOLD_TEST_OPENCODE="$place/opencode" PINFOLD_TEST_TOOLS="$place/tools" "$place/$name" "$@"
}

has_jail_tests() { [ -f "$root/tests/jail.rs" ] || [ -f "$root/tests/jail/main.rs" ]; }

no_jail_tests() {
    echo 'there is no tests/jail: confinement was not tested'
    [ "${JAIL_MUST_WORK:-0}" != 1 ]
}

# A background job of a script starts with SIGINT ignored and hands that on; some tests end something by it.
with_signals() {
    if env --default-signal=INT true 2>/dev/null; then
        env --default-signal=HUP,INT,QUIT,TERM "$@"
    else
        "$@"
    fi
}

run_tests() {
    install_packages
    need_cargo
    need_components
    fetch_crates
    install_opencode
    install_tools
    install_browser
    need_test_user
    if [ "$#" -eq 0 ]; then
        step format cargo fmt --check
        step lints cargo clippy --quiet --locked --all-targets -- -D warnings
    fi
    step tests with_signals cargo test --locked --no-fail-fast -- "$@"
    if ! has_jail_tests; then
        step 'jail tests' no_jail_tests
    elif [ "$(id -u)" -eq 0 ]; then
        step "jail tests as $TEST_USER" as_ordinary_user jail "$@"
    fi
    if has_jail_tests; then
        # Races and crowds are about the mediator, which is the same; they take as long as all others together. The
        # others that are left out are about covers, layers and tools of full mode alone.
        set -- --skip races:: --skip crowds:: --skip absent:: --skip executed:: --skip replaced:: --skip git_surface:: \
            --skip caches:: --skip registry:: --skip services:: --skip signing:: --skip browser:: --skip tools:: \
            --skip a_promise_that_may_be_missing_and_is_not_is_said "$@"
        step 'jail tests in reduced mode' with_signals env JAIL_MODE=reduced \
            cargo test --locked --no-fail-fast --test jail -- "$@"
        shift 26
    fi
    if [ "$#" -eq 0 ]; then
        # Four parsers; the step above has tried each for a second.
        step 'parsers of untrusted bytes' env PINFOLD_FUZZ_SECONDS=14 cargo test --locked --test fuzz -- --test-threads=1
    fi
    if [ "$(id -u)" -eq 0 ]; then
        # All of them again would take minutes; this one is the whole of it.
        step "end-to-end test as $TEST_USER" as_ordinary_user e2e "${@:-an_agent_works_in_its_sandboxes}"
    fi
    if [ -n "$failed" ]; then
        printf '\nrun.sh: %s steps passed; failed: %s\n' "$passed" "$failed"
        exit 1
    fi
    printf '\nrun.sh: all %s steps passed\n' "$passed"
}

run_bench() {
    need_cargo
    fetch_crates
    # The time of an agent's start is one of the tables; without npm it says that it was not measured.
    if [ -z "${PINFOLD_TEST_OPENCODE:-}" ] && have npm; then
        install_opencode
    fi
    cd "$root"
    exec cargo bench --quiet --locked --bench launch
}

usage() { sed -n 's/^# \{0,1\}//; 2,7p' "$root/bin/run.sh"; }

verb=${1:-}
case $verb in
    demo)
        shift
        build_binary
        exec "$binary" demo "$@"
        ;;
    test)
        shift
        run_tests "$@"
        ;;
    bench)
        run_bench
        ;;
    '')
        usage >&2
        exit 2
        ;;
    -h | --help | help) usage ;;
    *) run_verb "$@" ;;
esac
