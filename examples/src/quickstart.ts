import { connect, job, serve, workflow } from "pawl";

// A workflow is a function. Pawl records each of its steps before the next begins.
const signup = workflow({
  name: "signup",
  run: async ({ step }, input: { email: string }) => {
    const userId = await step.run("create-user", () => {
      console.log(`signup: create a user for ${input.email}`);
      return 42;
    });
    await step.sleep("settle-in", "500ms"); // or "7d"
    await step.run("send-welcome", () => console.log(`signup: send a welcome to user ${userId}`));
    return { userId, welcomed: true };
  },
});

// A job is one function. When it throws, Pawl retries it with backoff.
const greet = job({
  name: "greet",
  backoff: () => "200ms",
  run: (ctx, input: { name: string }) => {
    console.log(`greet: attempt ${ctx.attempt}`);
    if (ctx.attempt === 0) throw new Error("the first attempt always fails");
    return `Hello, ${input.name}!`;
  },
});

// A worker executes runs, a client starts them. Usually they are two processes; here they are one.
const worker = serve([signup, greet]);
const pawl = connect();

const ada = await pawl.start(signup, { email: "ada@example.com" }, { idempotencyKey: "ada@example.com" });
const signedUp = await pawl.result(ada.runId);
console.log(ada.created ? "signed up:" : "was signed up before:", signedUp);

const greeting = await pawl.start(greet, { name: "Ada" });
console.log(await pawl.result(greeting.runId));

await worker.stop();
await pawl.close();
