"""Records what Hugging Face's own client sends for a commit: python hub_client.py > ../../test/fixtures/hub-client.json (needs huggingface_hub)."""
import http.server
import json
import os
import threading

seen = []


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        here = f"http://127.0.0.1:{self.server.server_port}"
        text = body.decode()
        lines = [json.loads(line) for line in text.splitlines()] if "ndjson" in (self.headers["content-type"] or "") else None
        seen.append({"method": self.command, "path": self.path, "type": self.headers["content-type"], "key": "authorization" in self.headers, "body": lines or (text if self.command == "PUT" else json.loads(text or "null"))})
        found = {}
        if self.path == "/api/repos/create":
            found = {"url": f"{here}/datasets/me/rows", "name": "me/rows"}
        elif "/preupload/" in self.path:
            found = {"files": [{"path": each["path"], "uploadMode": "lfs" if each["path"].startswith("data/") else "regular", "shouldIgnore": False} for each in json.loads(text)["files"]]}
        elif self.path.endswith("/objects/batch"):
            found = {"objects": [{**each, "actions": {"upload": {"href": f"{here}/put"}, "verify": {"href": f"{here}/verify"}}} for each in json.loads(text)["objects"]]}
        elif "/commit/" in self.path:
            found = {"commitOid": "c", "commitUrl": f"{here}/datasets/me/rows/commit/c"}
        answer = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST = do_PUT = answer


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(HF_ENDPOINT=f"http://127.0.0.1:{server.server_port}", HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_PROGRESS_BARS="1", HF_HUB_DISABLE_TELEMETRY="1")
from huggingface_hub import CommitOperationAdd, HfApi  # noqa: E402

api = HfApi(token="hf_secret")
api.create_repo("me/rows", repo_type="dataset", private=True)
files = {"data/train.jsonl": b'{"a": 1}\n{"a": 2}\n', "README.md": b"# rows\n"}
additions = [CommitOperationAdd(path, content) for path, content in files.items()]
api.create_commit("me/rows", additions, commit_message="2 rows of one", repo_type="dataset")
print(json.dumps(seen, indent=1))
