"""A job, a machine and a workflow, served from Python.

    PAWL_URL=http://127.0.0.1:8080 [PAWL_TOKEN=…] python3 main.py
"""

import os
import signal
import urllib.request

from protocol import Server
from runs import job, machine, new_run, workflow
from worker import Worker

QUEUE = "python"


# A job: one function. If it raises an exception, it is retried with backoff.
def shout(ctx, text):
    if ctx.run["attempt"] == 0 and text.startswith("flaky"):
        raise RuntimeError("the first attempt fails")
    return text.upper() + "!"


# A machine: named steps over a state. Each outcome is committed before the next step begins.
def reserve(ctx):
    if ctx.attempt == 0:
        return ctx.retry(ctx.state, 10)  # sold out for a moment: the same step again
    return ctx.next("ask", {**ctx.state, "reserved": True})


def ask(ctx):
    timeout = ctx.state.get("timeoutMs")
    return ctx.await_signal(["paid"], "paid", ctx.state, timeout_ms=timeout, match={"currency": "EUR"})


def paid(ctx):
    if ctx.timed_out:
        return ctx.done({"status": "expired"})
    state = {**ctx.state, "amount": ctx.awaited[0]["payload"]["amount"]}
    return ctx.spawn("ship", [new_run("shout", item) for item in state["items"]], state)


def ship(ctx):
    labels = [child["output"] for child in ctx.children]
    return ctx.done({"status": "shipped", "amount": ctx.state["amount"], "labels": labels})


# A workflow: an ordinary function. Recorded steps do not execute again when the body runs again.
def sign_up(ctx, user):
    account = ctx.run("create-account", lambda: call(user["api"], "create"))
    ctx.run("charge", lambda: call(user["api"], "charge"), attempts=3, backoff_ms=10)
    ctx.sleep("cool-down", 50)
    confirmed = ctx.wait_for_event("confirmed", match={"email": user["email"]}, timeout_ms=60_000)
    missed = ctx.wait_for_event("never-sent", timeout_ms=20)
    greeting = ctx.invoke("greet", new_run("shout", "hello " + user["email"]))
    return {"account": account, "code": confirmed["code"], "missed": missed, "greeting": greeting}


def call(api, what):
    """An HTTP API; an answer other than 2xx is an error."""
    with urllib.request.urlopen(f"{api}/{what}", data=b"", timeout=60) as answer:
        return answer.read().decode()


def main():
    server = Server(os.environ["PAWL_URL"], os.environ.get("PAWL_TOKEN"))
    definitions = [
        job("shout", shout),
        machine("order", {"start": reserve, "ask": ask, "paid": paid, "ship": ship}),
        workflow("sign-up", sign_up),
    ]
    worker = Worker(server, definitions, QUEUE, lease=float(os.environ.get("PAWL_LEASE", "10")))
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: worker.stop())
    print("serving", flush=True)
    worker.run()
    print("stopped", flush=True)


if __name__ == "__main__":
    main()
