"""Records what Weights & Biases' own client sends: python wandb_client.py > ../../test/fixtures/wandb-client.json (needs wandb)."""
import http.server
import json
import os
import threading

seen = []

BUCKET = {"id": "b", "name": "run1", "displayName": "run1", "description": "", "config": "{}", "sweepName": None, "historyLineCount": 0, "project": {"id": "p", "name": "proj", "entity": {"id": "e", "name": "me"}}}


class Server(http.server.BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        found = {}
        if not self.path.startswith("/sdk"):
            parsed = json.loads(body)
            seen.append({"method": self.command, "path": self.path, "authorization": self.headers["authorization"].split()[0], "body": parsed})
            if "upsertBucket" in parsed.get("query", ""):
                found = {"data": {"upsertBucket": {"bucket": BUCKET, "inserted": True}}}
            elif "createRunFiles" in parsed.get("query", ""):
                found = {"data": {"createRunFiles": {"runID": "run1", "uploadHeaders": [], "files": []}}}
        text = json.dumps(found).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ.update(WANDB_BASE_URL=f"http://127.0.0.1:{server.server_port}", WANDB_API_KEY="a" * 40, WANDB_SILENT="true", WANDB_DISABLE_GIT="true", WANDB_CONSOLE="off")
import wandb  # noqa: E402

settings = wandb.Settings(x_disable_stats=True, x_disable_meta=True, disable_code=True)
run = wandb.init(project="proj", entity="me", id="run1", name="runs/0001", config={"group": 8, "policy": "embedded"}, settings=settings)
run.log({"train/reward": 0.5, "train/kl": 0.01}, step=1)
run.log({"train/reward": 0.75}, step=2)
run.finish()
print(json.dumps(seen, indent=1))
