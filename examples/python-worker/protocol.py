"""Calls of the worker protocol of a Pawl server: POST /v1/workers/<call>, JSON both ways.

Every call is one transaction at the server. A call without an answer may have been executed, so it is
sent again *as it was*: the claim id and the turn in it let the server recognise it. Two calls are the
exception, because their ids must be new each time: a claim is never repeated, but made anew with a fresh
claim id, and a worker registers anew under a fresh worker id (see worker.py).
"""

import json
import random
import time
import urllib.error
import urllib.request


class Refused(Exception):
    """The server refused the call with a problem document (RFC 9457)."""

    def __init__(self, status, problem):
        super().__init__(problem.get("detail") or f"status {status}")
        self.status = status
        self.code = problem.get("code", "")


class NoAnswer(Exception):
    """Outcome unknown: the server may have executed the call or not."""


class ClaimLost(Exception):
    """The claim is lost: drop the outcome silently."""


def new_claim_id():
    """A random claim id, the proof of a claim. As text, like every id."""
    return str(random.SystemRandom().randrange(1, 9 * 10**18))


class Server:
    def __init__(self, url, token=None):
        self.base = url.rstrip("/") + "/v1/workers/"
        self.headers = {"content-type": "application/json"}
        if token:
            self.headers["authorization"] = "Bearer " + token

    def call(self, name, body, timeout=30):
        """One call, sent once."""
        data = json.dumps(body).encode()
        request = urllib.request.Request(self.base + name, data, self.headers, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            text = error.read()
            if error.code >= 500 or error.code in (408, 429):
                raise NoAnswer(f"{name}: status {error.code}") from error
            try:
                problem = json.loads(text)
            except ValueError:
                problem = {}
            raise Refused(error.code, problem) from error
        except (OSError, ValueError) as error:  # no connection, a time-out, half an answer
            raise NoAnswer(f"{name}: {error}") from error

    def persist(self, name, body, is_unwanted):
        """Repeats the call until the server answers, or `is_unwanted` returns true."""
        delay = 0.1
        while True:
            try:
                return self.call(name, body)
            except NoAnswer:
                if is_unwanted():
                    raise ClaimLost() from None
                time.sleep(delay * random.uniform(0.75, 1.25))
                delay = min(delay * 2, 2)

    def write(self, name, member, item, is_unwanted):
        """Sends one commit or journal entry until there is a verdict on it other than busy."""
        body = {member: [item], "patient": True}
        delay = 0.05
        while True:
            verdict = self.persist(name, body, is_unwanted)["verdicts"][0]
            if verdict["kind"] == "stale" or is_unwanted():
                raise ClaimLost()
            if verdict["kind"] != "busy":
                return verdict
            # Another transaction has the run locked: ask again, without waiting for the lock.
            body["patient"] = False
            time.sleep(delay)
            delay = min(delay * 2, 1)

    def pages(self, name, body, member, after, is_unwanted):
        """All pages of an inbox, of children or of a journal; `after` gives the mark behind an item."""
        while True:
            page = self.persist(name, body, is_unwanted)[member]
            if not page:
                return
            yield from page
            body = {**body, "after": after(page[-1])}
