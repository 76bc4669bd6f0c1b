/**
 * Thrown when an error says nothing about the run, because the run was cancelled, the claim lost, or the worker has begun to
 * stop: nobody handles the error, and the worker releases the claim with its attempt unchanged. Caught by `worker/execute.ts`.
 */
export class LetGo extends Error {}
