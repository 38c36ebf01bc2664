"""A client for `espalier rollouts`: submit tasks, take finished groups, announce new weights.

Standard library only. Requests that are refused for lack of room (429), connections that break and
answers that are cut off are tried again. Every request may be repeated: submissions have names, groups
have cursors, and what is asked of a world has a key under which the service does it once.
"""

import http.client
import json
import time
import urllib.error
import urllib.request
import uuid


class EspalierError(RuntimeError):
    """An error of the service, with its message."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Client:
    """Talks to one service. `token` is what the service was started with, if anything.

    Trainers that share a service have a name each, `trainer`: weights, versions and pauses are their own.
    """

    def __init__(self, url="http://127.0.0.1:8900", token=None, timeout=120.0, retries=8, trainer=None):
        self.url = url.rstrip("/")
        self.token = token
        self.timeout = timeout
        self.retries = retries
        self.named = {} if trainer is None else {"trainer": trainer}

    def ask(self, path, body=None, method=None, key=None):
        """One request, retried if that can help; returns the JSON of the answer.

        With a key, the service runs it once, however often it is sent.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"} if data is not None else {}
        if self.token:
            headers["authorization"] = f"Bearer {self.token}"
        if key:
            headers["idempotency-key"] = key
        for attempt in range(self.retries + 1):
            request = urllib.request.Request(
                self.url + path,
                data=data,
                headers=headers,
                method=method or ("GET" if data is None else "POST"),
            )
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    return json.loads(answer.read())
            except urllib.error.HTTPError as error:
                message = _message(error)
                if error.code not in (429, 502, 503) or attempt == self.retries:
                    raise EspalierError(error.code, message) from None
            except (OSError, http.client.IncompleteRead, http.client.BadStatusLine, ValueError):
                # A ValueError is an answer that was cut off within its headers: what is left has no length.
                if attempt == self.retries:
                    raise
            time.sleep(min(10.0, 0.25 * 2**attempt))

    def submit(self, tasks, **options):
        """Submits tasks (ids or data); gives the name of the submission.

        Options: id, policy, version, group, step, seed, sampling, format.
        """
        options.setdefault("id", uuid.uuid4().hex)
        given = {k: v for k, v in options.items() if v is not None}
        body = {"tasks": list(tasks), **self.named, **given}
        return self.ask("/v1/rollouts", body)["id"]

    def groups(self, submission, wait=30.0):
        """Finished groups of a submission as they come; ends when it is over."""
        cursor = 0
        if self.timeout is not None:
            wait = min(wait, self.timeout / 2)  # the answer has to come before we stop waiting for it
        while True:
            taken = self.ask(f"/v1/rollouts/{submission}/groups?after={cursor}&wait={wait}")
            yield from taken["groups"]
            cursor = taken["cursor"]
            if taken["groups"]:
                continue
            if taken["state"] == "failed":
                raise EspalierError(500, self.status(submission).get("reason", "it failed"))
            if taken["state"] != "running":
                return

    def roll(self, tasks, **options):
        """Submits tasks and waits for all of them; groups in the order of the tasks, then by seat."""
        submission = self.submit(tasks, **options)
        return sorted(self.groups(submission), key=lambda group: (group["index"], group["group"]))

    def roll_each(self, tasks, **options):
        """One group for every task, for trainers that match groups with prompts by their place."""
        tasks = list(tasks)
        groups = self.roll(tasks, **options)
        if [group["index"] for group in groups] == list(range(len(tasks))):
            return groups
        seats = sorted({group["seat"] for group in groups if "seat" in group})
        if len(seats) > 1:
            raise ValueError(
                f"every task has a group for each of the seats {', '.join(seats)}, and this trainer takes one per "
                "prompt: give all seats but one a player, espalier rollouts --seat NAME=POLICY"
            )
        raise ValueError(f"{len(groups)} groups came of {len(tasks)} tasks: the submission was cancelled")

    def status(self, submission):
        return self.ask(f"/v1/rollouts/{submission}")

    def cancel(self, submission):
        return self.ask(f"/v1/rollouts/{submission}", method="DELETE")

    def announce(self, version, policy=None, interrupt=False):
        """Announces the new version of the weights."""
        body = {"version": version, "interrupt": interrupt, **self.named}
        return self.ask("/v1/weights", body if policy is None else {**body, "policy": policy})

    def pause(self, seconds=600):
        """Stops sampling; it goes on by itself after so many seconds, unless it is paused again before."""
        return self.ask("/v1/pause", {"seconds": seconds, **self.named})

    def resume(self):
        return self.ask("/v1/resume", {**self.named})

    def open_world(self, task, seed=0):
        return self.ask_once("/v1/worlds", {"task": task, "seed": seed})

    def call(self, world, name, arguments):
        return self.ask_once(f"/v1/worlds/{world}/calls", {"name": name, "arguments": arguments})

    def close_world(self, world, answer=None):
        return self.ask_once(f"/v1/worlds/{world}/close", {} if answer is None else {"answer": answer})

    def ask_once(self, path, body):
        """A request that changes something each time it runs: its retries share a key."""
        return self.ask(path, body, key=uuid.uuid4().hex)


def _message(error):
    try:
        text = error.read().decode(errors="replace")
    except (OSError, http.client.IncompleteRead):
        return error.reason
    try:
        return json.loads(text)["error"]
    except (ValueError, KeyError, TypeError):
        return text or error.reason


def experts_of(written):
    """Numbers of experts as an export holds them: an array of tokens x layers x experts per token."""
    import base64

    import numpy as np

    numbers = np.frombuffer(base64.b64decode(written["data"]), dtype="<u2" if written["dtype"] == "uint16" else "u1")
    return numbers.astype(np.int32).reshape(written["shape"])
