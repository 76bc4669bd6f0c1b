import { connect, job, machine, serve, type } from "pawl";

// A job is one function. When it throws, it is tried again after a while.
const greet = job({
  name: "greet",
  backoff: () => "200ms",
  run: (ctx, input: { name: string }) => {
    console.log(`greet: attempt ${ctx.attempt}`);
    if (ctx.attempt === 0) throw new Error("the first attempt always fails");
    return `Hello, ${input.name}!`;
  },
});

// A machine is a set of steps over a state. Each outcome is committed before the next step begins.
const signup = machine({
  name: "signup",
  state: type<{ email: string; userId?: number }>(),
  initial: "createUser",
  steps: {
    createUser: (ctx) => {
      console.log(`signup: create a user for ${ctx.state.email}`);
      return ctx.next("sendWelcome", { ...ctx.state, userId: 42 });
    },
    sendWelcome: (ctx) => {
      console.log(`signup: send a welcome to user ${ctx.state.userId}`);
      return ctx.done({ userId: ctx.state.userId, welcomed: true });
    },
  },
});

// A worker executes runs, a client starts them. Usually they are different processes; here they are one.
const worker = serve([greet, signup]);
const pawl = connect();

const greeting = await pawl.start(greet, { name: "Ada" });
console.log(await pawl.result(greeting.runId));

const ada = await pawl.start(signup, { email: "ada@example.com" }, { idempotencyKey: "ada@example.com" });
const signedUp = await pawl.result(ada.runId);
console.log(ada.created ? "signed up:" : "was signed up before:", signedUp);

await worker.stop();
await pawl.close();
