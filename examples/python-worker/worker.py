"""A worker: registers, sends heartbeats, claims runs and executes each in its own thread.

The lease: all claims of a worker last for as long as it beats. When no beat was confirmed for 0.8 of the
lease, its claims may be given to others soon: it aborts what it executes, and registers under a new id.
The guards in the database hold in any case: whoever lost a claim cannot write any more.
"""

import os
import socket
import threading
import time
import uuid

from protocol import ClaimLost, NoAnswer, Refused, new_claim_id
from runs import execute


class Execution:
    """A claimed run and its claim."""

    def __init__(self, run, claim_id, queue):
        self.run = run
        self.run_id = run["runId"]
        self.claim_id = claim_id
        self.queue = queue
        self.turn = 0  # one more after each committed transition
        self.begun = time.monotonic()
        self.aborted = threading.Event()  # cancelled, the claim lost, or the worker gone

    @property
    def claim(self):
        return {"runId": self.run_id, "claimId": self.claim_id}


class Worker:
    def __init__(self, server, definitions, queue, slots=4, lease=10.0):
        self.server = server
        self.definitions = {(d.name, d.version): d for d in definitions}
        self.queue = queue
        self.slots = slots
        self.lease = lease
        self.worker_id = None
        self.claiming = set()  # ids of claims that are being made
        self.executions = {}  # by run id
        self.changed = threading.Condition()  # guards the two above
        self.stopping = threading.Event()
        self.confirmed = 0.0  # when the last confirmed beat was sent

    def run(self):
        """Serves until `stop` is called."""
        self.register()
        threading.Thread(target=self.beat_forever, daemon=True).start()
        while not self.stopping.is_set():
            self.claim()
        self.drain()

    def stop(self):
        self.stopping.set()
        self.end_claims(self.worker_id)

    def end_claims(self, worker_id):
        for claim_id in list(self.claiming):
            # Do not just hang up: an answer on its way would be lost, with the runs in it.
            try:
                self.server.call("claim/end", {"workerId": worker_id, "claimId": claim_id})
            except (NoAnswer, Refused):
                pass

    # Registration and heartbeats

    def register(self):
        while not self.stopping.is_set():
            # Under a new id each time, also when the last call had no answer.
            worker_id = f"python-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:12]}"
            sent = time.monotonic()
            body = {
                "workerId": worker_id,
                "leaseMs": int(self.lease * 1000),
                "queues": [self.queue],
                "info": {"language": "python"},
                "definitions": [d.registration(self.queue) for d in self.definitions.values()],
            }
            try:
                self.server.call("register", body)
            except NoAnswer:
                time.sleep(0.5)
                continue
            self.confirmed = sent
            self.worker_id = worker_id
            return

    def beat_forever(self):
        beats = 0
        while True:
            time.sleep(min(self.lease / 5, 1))
            # Now and then: all our claims, to find those whose answer was lost.
            since = "0" if beats % 3 == 0 else None
            beats += 1
            sent = time.monotonic()
            try:
                beat = self.server.call(
                    "heartbeat", {"workerId": self.worker_id, "since": since}, timeout=self.lease / 2
                )
                if beat["alive"]:
                    self.confirmed = sent
                    self.compare(beat, sent)
                    continue
            except (NoAnswer, Refused):
                if time.monotonic() - self.confirmed < 0.8 * self.lease:
                    continue
            # The lease has ended, or will soon: other workers may claim our runs.
            for execution in self.snapshot():
                execution.aborted.set()
            if self.stopping.is_set():
                return
            lost = self.worker_id
            try:
                self.register()
            except Refused as error:
                print(f"cannot register: {error}", flush=True)
                self.stopping.set()
            self.end_claims(lost)

    def compare(self, beat, sent):
        """Compares the claims in the database with the runs that we execute."""
        executing = {e.run_id: e for e in self.snapshot()}
        for run_id in beat["cancelled"]:
            if run_id in executing:
                executing[run_id].aborted.set()
        stray = dict(beat["cancelled"])
        if beat["held"] is not None:
            stray.update(beat["held"])
            for run_id, execution in executing.items():
                if execution.begun < sent and beat["held"].get(run_id) != execution.claim_id:
                    # Lost; or its outcome is being committed right now, and then this does no harm.
                    execution.aborted.set()
        with self.changed:
            unknown = [
                {"runId": run_id, "claimId": claim_id}
                for run_id, claim_id in stray.items()
                if claim_id not in self.claiming
                and getattr(self.executions.get(run_id), "claim_id", None) != claim_id
            ]
        if unknown:
            self.release(unknown)

    def release(self, claims):
        try:
            self.server.call("release", {"claims": claims})
        except (NoAnswer, Refused):
            pass  # a later beat finds them, or the lease passes

    def snapshot(self):
        with self.changed:
            return list(self.executions.values())

    # Claiming and executing

    def claim(self):
        with self.changed:
            while len(self.executions) >= self.slots and not self.stopping.is_set():
                self.changed.wait(1)
            free = self.slots - len(self.executions)
            if free <= 0 or self.stopping.is_set():
                return
            # Fresh for every call. If this one has no answer, the next has another id; runs that it claimed
            # nevertheless are found by a beat, and released.
            claim_id = new_claim_id()
            self.claiming.add(claim_id)
        served = [{"name": name, "version": version} for name, version in self.definitions]
        body = {
            "workerId": self.worker_id,
            "claimId": claim_id,
            "queue": self.queue,
            "limit": free,
            "definitions": served,
            "waitSeconds": 20,
        }
        try:
            runs = self.server.call("claim", body, timeout=35)["runs"]
        except NoAnswer:
            runs = []
            time.sleep(0.5)
        with self.changed:
            for run in runs:
                self.executions[run["runId"]] = Execution(run, claim_id, self.queue)
            self.claiming.discard(claim_id)
        for run in runs:
            execution = self.executions[run["runId"]]
            threading.Thread(target=self.execute, args=(execution,), daemon=True).start()

    def execute(self, execution):
        definition = self.definitions[execution.run["name"], execution.run["version"]]
        try:
            execute(execution, definition, self.server)
        except ClaimLost:
            # Cancelled, or lost: release it. If another worker holds it, this does nothing.
            self.release([execution.claim])
        except Refused as error:
            print(f"run {execution.run_id}: {error}", flush=True)
            self.release([execution.claim])
        finally:
            with self.changed:
                if self.executions.get(execution.run_id) is execution:
                    del self.executions[execution.run_id]
                self.changed.notify_all()

    def drain(self):
        end = time.monotonic() + 5
        with self.changed:
            while self.executions and time.monotonic() < end:
                self.changed.wait(0.2)
        # Releases the remaining claims, with their attempts unchanged.
        for _ in range(5):
            try:
                if self.server.call("unregister", {"workerId": self.worker_id})["held"] == 0:
                    return
            except NoAnswer:
                pass
            time.sleep(0.5)
