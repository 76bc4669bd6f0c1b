"""Executes a workflow: an ordinary function whose steps are recorded in a journal.

The body runs from the top at every claim. A step that the journal has as completed gives its recorded
outcome without being done again; the first one that it has not is done, and recorded before the body goes
on. A step that waits (a sleep, a signal, an invoked run, a backoff) is recorded too, then the run is
suspended: it holds no worker, and the body runs again when the wait may be over.

This worker does one step at a time. One that has several at once records each when it completes, gives
the body its outcomes in the order of their seqs (a replay does the same, so a race has the same winner),
and suspends only when all that are outstanding wait.
"""

import json
import time

from protocol import ClaimLost, Refused


class StepFailed(Exception):
    """A step or an invoked run failed. The body may catch it. The same on every replay."""

    def __init__(self, step, error):
        super().__init__(f'step "{step}" failed: {error["message"]}')
        self.error = error


class Suspended(BaseException):
    """Ends the body, past any `except Exception` in it."""

    def __init__(self, transition):
        super().__init__()
        self.transition = transition


class Paused(BaseException):
    """Ends the body of a paused run, past any `except Exception` in it."""


class WorkflowContext:
    def __init__(self, execution, server, journal):
        self.run_id = execution.run_id
        self.aborted = execution.aborted
        self._execution = execution
        self._server = server
        self._journal = {step["name"]: step for step in journal}
        self._called = set()
        self._seq = max((step["seq"] or 0 for step in journal), default=0)
        self._is_paused = False
        self._told_at = time.monotonic()  # when the server last told whether the run is paused

    def run(self, name, function, attempts=3, backoff_ms=1000):
        """Calls the function, with retries, and returns its result."""
        recorded = self._take(name, "run")
        if recorded and recorded["seq"] is not None:
            return outcome(name, recorded)
        attempt = recorded["attempt"] if recorded else 0
        if recorded and recorded["dueMs"] is not None and recorded["dueMs"] > 0:
            raise self._suspend(name, recorded)  # woken too early
        self._begin()
        begun = time.monotonic()
        try:
            output, error = json.dumps(function()), None
        except Exception as thrown:
            output, error = None, {"name": type(thrown).__name__, "message": str(thrown)}
        if error is not None and attempt + 1 < attempts:
            # The count and the due time are durable: after a crash the retries continue from here.
            change = {
                "op": "retry",
                "kind": "run",
                "attempt": attempt + 1,
                "error": json.dumps(error),
                "delayMs": backoff_ms * 2**attempt,
            }
        else:
            change = {
                "op": "run",
                "attempt": attempt,
                "output": output,
                "error": None if error is None else json.dumps(error),
                "tookMs": round((time.monotonic() - begun) * 1000),
            }
        verdict = self._record(name, change)
        if verdict["kind"] == "pending":
            raise self._suspend(name, verdict)
        if verdict["kind"] == "done":  # recorded by an earlier call, whose answer was lost
            return outcome(name, verdict)
        # The value that a replay sees: the recorded text, read back.
        return outcome(name, {"output": output and json.loads(output), "error": error})

    def sleep(self, name, milliseconds):
        return self._wait(name, "sleep", {"op": "sleep", "delayMs": milliseconds, "at": None})

    def wait_for_event(self, name, event=None, match=None, timeout_ms=None):
        """The payload of the first signal that matches, or None after the timeout."""
        match = None if match is None else json.dumps(match)
        change = {"op": "wait", "event": event or name, "match": match, "delayMs": timeout_ms}
        return self._wait(name, "wait", change)

    def invoke(self, name, child):
        """The result of another run; raises StepFailed if it fails or is cancelled."""
        return self._wait(name, "invoke", {"op": "invoke", "child": child})

    def _wait(self, name, kind, change):
        recorded = self._take(name, kind)
        if recorded and recorded["seq"] is not None:
            return outcome(name, recorded)
        self._begin()
        # The first time this begins the wait; sent again, it asks whether the wait is over.
        verdict = self._record(name, change)
        if verdict["kind"] == "done":
            return outcome(name, verdict)
        raise self._suspend(name, verdict, change)

    def _take(self, name, kind):
        if name in self._called:
            raise ValueError(f'the step "{name}" is called twice: put an index into its name')
        self._called.add(name)
        recorded = self._journal.get(name)
        if recorded and recorded["kind"] != kind:
            raise ValueError(f'the step "{name}" was recorded as {recorded["kind"]}, and is now {kind}')
        return recorded

    def _begin(self):
        """Begins no step of a paused run: the worker releases the run, which goes on after `resume`."""
        if self.aborted.is_set():
            raise ClaimLost()
        if not self._is_paused and time.monotonic() - self._told_at > 0.5:
            answer = self._server.persist("paused", {"claims": [self._execution.claim]}, self.aborted.is_set)
            self._is_paused = self.run_id in answer["paused"]
            self._told_at = time.monotonic()
        if self._is_paused:
            raise Paused()

    def _record(self, name, change):
        if self.aborted.is_set():
            raise ClaimLost()
        entry = {
            "runId": self.run_id,
            "claimId": self._execution.claim_id,
            "name": name,
            "seq": self._seq + 1,  # its place in the order of replay, if it completes by this
            "inboxSeq": self._execution.run["inboxSeq"],
            "change": change,
        }
        verdict = self._server.write("record", "entries", entry, self.aborted.is_set)
        self._is_paused = verdict.get("paused", False)
        self._told_at = time.monotonic()
        if verdict["kind"] == "failed":
            raise Refused(422, {"detail": verdict["message"], "code": verdict["code"]})
        if verdict["kind"] == "done":
            self._seq = max(self._seq, verdict["seq"])
        elif verdict["kind"] == "recorded":
            self._seq += 1
        return verdict

    def _suspend(self, name, pending, change=None):
        names, matches = [], {}
        if change and change["op"] == "wait":
            names = [change["event"]]
            if change["match"] is not None:
                matches = {change["event"]: change["match"]}
        elif pending["childId"] is not None:
            names = ["~" + pending["childId"]]  # the engine's own signal: that run has ended
        return Suspended(
            {
                "kind": "suspend",
                "names": names,
                "matches": matches,
                # The record has tried the signals up to this one; a later one wakes the run, also if it came
                # between the record and this commit.
                "after": pending.get("inboxSeq", 0),
                "dueAt": pending["dueAt"],
                "steps": [name],
            }
        )


def outcome(name, recorded):
    if recorded["error"] is not None:
        raise StepFailed(name, recorded["error"])
    return recorded["output"]


def execute_workflow(execution, definition, server, commit):
    run = execution.run
    journal = run["journal"]
    if journal is None:  # too much to come along
        body = {"runId": execution.run_id, "after": ""}
        aborted = execution.aborted.is_set
        journal = list(server.pages("journal", body, "steps", lambda step: step["name"], aborted))
    ctx = WorkflowContext(execution, server, journal)
    try:
        result = definition.parts["run"](ctx, json.loads(run["input"]))
        transition = {"kind": "done", "step": None, "result": json.dumps(result)}
    except Suspended as suspended:
        transition = suspended.transition
    except Paused:
        raise ClaimLost() from None  # the worker releases the claim
    except ClaimLost:
        raise
    except Exception as error:  # of the body: the run has failed
        transition = failure(error)
    try:
        commit(execution, server, transition)
    except Refused as error:  # a result that cannot be stored
        commit(execution, server, failure(error))


def failure(error):
    record = {"name": type(error).__name__, "message": str(error)}
    if isinstance(error, StepFailed):
        record["cause"] = error.error
    return {"kind": "stop", "step": None, "error": json.dumps(record)}
