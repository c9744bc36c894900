"""One package, `left`, as the registries of npm, PyPI and crates.io would serve it: on a loopback port, until stdin ends.

Arguments: a file for the paths that were asked for, and for TLS (pip caches nothing without) one with certificate and key.
"""
import base64, gzip, hashlib, http.server, io, json, ssl, sys, tarfile, threading, zipfile


def tar(files):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(text), 1700000000, 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(raw.getvalue(), mtime=0)


def wheel():
    raw, info = io.BytesIO(), "left-1.0.0.dist-info/"
    files = {
        "left.py": "def side(): return 'left'\n",
        info + "METADATA": "Metadata-Version: 2.1\nName: left\nVersion: 1.0.0\n",
        info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in files) + info + "RECORD,,\n"
    with zipfile.ZipFile(raw, "w") as archive:
        for name, text in {**files, info + "RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(name, (2023, 11, 14, 22, 13, 20)), text)
    return raw.getvalue()


NPM = tar({
    "package/package.json": json.dumps({"name": "left", "version": "1.0.0", "main": "index.js"}),
    "package/index.js": "module.exports = () => 'left';\n",
})
CRATE = tar({
    "left-1.0.0/Cargo.toml": '[package]\nname = "left"\nversion = "1.0.0"\nedition = "2021"\n',
    "left-1.0.0/src/lib.rs": "pub fn side() -> &'static str { \"left\" }\n",
})
WHEEL = wheel()
WHEEL_NAME = "left-1.0.0-py3-none-any.whl"


def pages(base):
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(NPM).digest()).decode()
    dist = {"tarball": f"{base}/npm/left-1.0.0.tgz", "integrity": integrity, "shasum": hashlib.sha1(NPM).hexdigest()}
    version = {"name": "left", "version": "1.0.0", "main": "index.js", "dist": dist}
    crate = {"name": "left", "vers": "1.0.0", "deps": [], "features": {}, "yanked": False,
             "cksum": hashlib.sha256(CRATE).hexdigest()}
    digest = hashlib.sha256(WHEEL).hexdigest()
    return {
        "/left": json.dumps({"name": "left", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}),
        "/npm/left-1.0.0.tgz": NPM,
        "/simple/left/": f'<!DOCTYPE html><a href="{base}/files/{WHEEL_NAME}#sha256={digest}">{WHEEL_NAME}</a>',
        f"/files/{WHEEL_NAME}": WHEEL,
        "/config.json": json.dumps({"dl": f"{base}/crates/{{crate}}-{{version}}.crate"}),
        "/le/ft/left": json.dumps(crate) + "\n",
        "/crates/left-1.0.0.crate": CRATE,
    }


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        page = pages(self.server.base).get(self.path)
        body = page.encode() if isinstance(page, str) else page or b""
        kind = "text/html" if self.path.startswith("/simple/") else "application/json"
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", kind if isinstance(page, str) else "application/octet-stream")
        self.send_header("Cache-Control", "public, max-age=86400")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(body)
        with open(sys.argv[1], "a") as asked:
            asked.write(self.path + "\n")

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Registry)
server.base = f"http://127.0.0.1:{server.server_port}"
if len(sys.argv) > 2:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[2])
    server.socket = context.wrap_socket(server.socket, server_side=True)
    server.base = server.base.replace("http:", "https:")
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
