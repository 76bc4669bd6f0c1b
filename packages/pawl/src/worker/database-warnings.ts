/** What workers, the server and `pawl doctor` say about a database that is a copy, or held. */

export const copyWarning =
  "pawl: this database is a copy (a fork, or a restored backup): it was migrated elsewhere. What is executed here may do again " +
  "what the original did or will do. If this is now the database to work with, run `pawl fork adopt`; " +
  "if not, stop this worker, or run `pawl hold`";

export const heldWarning =
  "pawl: this database is held: nothing is executed. Runs and signals are accepted and wait until `pawl fork adopt` or " +
  "`pawl hold --release`";
