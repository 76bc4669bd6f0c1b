/**
 * Loaded before a worker process (`--import`): its monotonic clock stands still, so that it never notices by itself that its lease has
 * passed. Its heartbeat is a thread, with a clock of its own, and hears it from the database.
 */

const standing = process.hrtime.bigint();
process.hrtime.bigint = () => standing;
