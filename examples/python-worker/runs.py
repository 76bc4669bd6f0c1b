"""Executes one claimed run: a job, a machine or a workflow.

Each has the same end: a transition is committed under the claim id and the turn of the claim, and only
what the server answered as committed has happened. A crash before that repeats the step.
"""

import json
import traceback

from protocol import ClaimLost, Refused
from workflow import execute_workflow

DAY = 86_400_000


class Failed(Exception):
    """Raised by a job or a step that must not be retried."""


class Definition:
    def __init__(self, name, kind, version=1, max_attempts=20, max_crashes=None, **parts):
        self.name = name
        self.kind = kind
        self.version = version
        self.max_attempts = max_attempts
        self.max_crashes = max_crashes
        self.parts = parts  # run: a function; steps: functions by name, and initial, of a machine

    def registration(self, queue):
        return {
            "name": self.name,
            "version": self.version,
            "kind": self.kind,
            "queue": queue,
            "priority": 0,
            "retentionMs": 30 * DAY,
        }


def job(name, run, **options):
    return Definition(name, "job", run=run, **options)


def machine(name, steps, initial="start", **options):
    return Definition(name, "machine", steps=steps, initial=initial, **options)


def workflow(name, run, max_crashes=10, **options):
    return Definition(name, "workflow", run=run, max_crashes=max_crashes, **options)


def new_run(name, value, **options):
    """A run to start, for spawn and invoke; None takes the value of the definition."""
    names = (
        "version kind queue priority step delayMs at retentionMs idempotencyKey uniqueKeyBase64 "
        "uniqueScope partitionKey rateLimit weight"
    )
    return {**dict.fromkeys(names.split()), **options, "name": name, "input": json.dumps(value)}


def error_record(error):
    """An error record: at least name and message."""
    return json.dumps({"name": type(error).__name__, "message": str(error)})


def commit(execution, server, transition, inbox_seq=None):
    """Commits a transition and returns the verdict. Raises Refused if its values cannot be stored."""
    run = execution.run
    item = {
        "runId": execution.run_id,
        "queue": execution.queue,
        "claimId": execution.claim_id,
        "turn": execution.turn,
        "inboxSeq": run["inboxSeq"] if inbox_seq is None else inbox_seq,
        "parentId": run["parentId"],
        "partitionKey": run["partitionKey"],
        "next": None,  # the claim for the next run of the same key; without one it goes through the queue
        "transition": transition,
    }
    verdict = server.write("commit", "commits", item, execution.aborted.is_set)
    if verdict["kind"] == "failed":
        raise Refused(422, {"detail": verdict["message"], "code": verdict["code"]})
    execution.turn += 1  # committed, or already: by a call whose answer was lost
    return verdict


def execute(execution, definition, server):
    run = execution.run
    if execution.aborted.is_set():
        raise ClaimLost()
    # A run that kills its workers is not retried forever: crashes count as attempts of a job.
    limit = definition.max_crashes
    is_used_up = definition.kind == "job" and run["attempt"] >= definition.max_attempts
    if is_used_up or (limit is not None and run["crashes"] > limit):
        error = {"name": "TooManyCrashes", "code": "TooManyCrashes", "message": f"{run['crashes']} crashes"}
        commit(execution, server, {"kind": "stop", "step": run["step"], "error": json.dumps(error)})
    elif definition.kind == "job":
        execute_job(execution, definition, server)
    elif definition.kind == "machine":
        execute_machine(execution, definition, server)
    else:
        execute_workflow(execution, definition, server, commit)


# Jobs


def execute_job(execution, definition, server):
    run = execution.run
    try:
        result = definition.parts["run"](execution, json.loads(run["input"]))
        transition = {"kind": "done", "step": None, "result": json.dumps(result)}
    except ClaimLost:
        raise
    except Exception as error:  # the user's code: any error is an outcome
        attempts = run["attempt"] + 1
        if isinstance(error, Failed) or attempts >= definition.max_attempts:
            transition = {"kind": "stop", "step": None, "error": error_record(error)}
        else:
            transition = {
                "kind": "retry",
                "step": None,
                "state": None,
                "delayMs": min(1000 * 2 ** run["attempt"], 300_000),
                "error": error_record(error),
            }
    try:
        commit(execution, server, transition)
    except Refused as error:
        commit(execution, server, {"kind": "stop", "step": None, "error": error_record(error)})


# Machines


class MachineContext:
    """The context of a step, and the outcomes that it may return."""

    def __init__(self, execution, step, state, inbox, timed_out, children, attempt):
        self.run_id = execution.run_id
        self.aborted = execution.aborted
        self.step = step
        self.state = state
        self.inbox = inbox
        self.awaited = [signal for signal in inbox if signal["matched"]]
        self.timed_out = timed_out
        self.children = children
        self.attempt = attempt

    @property
    def seqs(self):
        return [signal["seq"] for signal in self.awaited]

    def next(self, step, state):
        # `keep` continues with the next step at once; `next` would end the claim, so any worker may continue.
        return {"kind": "keep", "step": step, "state": json.dumps(state), "consumed": self.seqs}

    def retry(self, state, delay_ms, error=None):
        record = None if error is None else error_record(error)
        return {
            "kind": "retry",
            "step": self.step,
            "state": json.dumps(state),
            "delayMs": delay_ms,
            "error": record,
        }

    def await_signal(self, names, step, state, timeout_ms=None, match=None):
        return {
            "kind": "await",
            "step": step,
            "state": json.dumps(state),
            "names": names,
            "match": None if match is None else json.dumps(match),
            "delayMs": timeout_ms,
            "shown": self.seqs,
        }

    def spawn(self, step, children, state):
        return {
            "kind": "spawn",
            "step": step,
            "state": json.dumps(state),
            "children": children,
            "consumed": self.seqs,
        }

    def done(self, result):
        return {"kind": "done", "step": self.step, "result": json.dumps(result)}

    def stop(self, error):
        return {"kind": "stop", "step": self.step, "error": error_record(error)}


def execute_machine(execution, definition, server):
    run, steps = execution.run, definition.parts["steps"]
    step = run["step"] or definition.parts["initial"]
    # Until a transition has written a state, the input is the state.
    state = json.loads(run["input"] if run["state"] is None else run["state"])
    inbox_seq, timed_out, attempt = run["inboxSeq"], run["timedOut"], run["attempt"]
    inbox = run["inbox"]
    if inbox is None:  # too much to come along
        inbox = read_inbox(execution, server, 0, inbox_seq)
    children = read_children(execution, server) if run["children"] else []
    while True:
        ctx = MachineContext(execution, step, state, inbox, timed_out, children, attempt)
        try:
            outcome = steps[step](ctx)
            verdict = commit(execution, server, outcome, inbox_seq)
        except ClaimLost:
            raise
        except Exception as error:  # of the step, or its values were refused: this worker has no `handle`
            traceback.print_exc()
            commit(execution, server, ctx.stop(error), inbox_seq)
            return
        if outcome["kind"] != "keep":
            return  # the claim has ended
        # The claim stays. The signals that the step saw are consumed; timeout and children are reset.
        step, state = outcome["step"], json.loads(outcome["state"])
        inbox = [{**signal, "matched": False} for signal in inbox if not signal["matched"]]
        timed_out, children, attempt = False, [], 0
        if verdict["inboxSeq"] is not None and verdict["inboxSeq"] > inbox_seq:
            inbox += read_inbox(execution, server, inbox_seq, verdict["inboxSeq"])
            inbox_seq = verdict["inboxSeq"]


def read_inbox(execution, server, after, up_to):
    body = {"runId": execution.run_id, "after": after, "upTo": up_to}
    aborted = execution.aborted.is_set
    return list(server.pages("inbox", body, "signals", lambda signal: signal["seq"], aborted))


def read_children(execution, server):
    body = {"runId": execution.run_id, "after": -1}
    aborted = execution.aborted.is_set
    return [
        {
            "run_id": child["runId"],
            "phase": child["phase"],  # done, failed or cancelled
            "output": None if child["result"] is None else json.loads(child["result"]),
        }
        for child in server.pages("children", body, "children", lambda child: child["position"], aborted)
    ]
