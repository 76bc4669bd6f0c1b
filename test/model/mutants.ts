/**
 * The ways in which the protocol can be built wrong. Each takes one rule of one operation away; the operation asks
 * for it by name. The model's test demands that the search finds a broken law for every one of them, which is what
 * shows that the laws and scenarios can tell a right protocol from a wrong one.
 */

export type Mutant =
  /** The claim is named by a number counted in the row instead of a random one. */
  | "guard by a counter"
  /** A claim takes a row as it was in the unlocked page, without looking at it again once it is locked. */
  | "claim without a recheck"
  /** An await decides by the inbox that the claim had loaded. */
  | "park without a recheck"
  /** An await decides with the snapshot of the statement that waited for the lock. */
  | "park decides while locking"
  /** A signal is inserted without the row's lock and wakes by an update that filters by status. */
  | "status-filtered wake"
  /** The guard of a commit does not compare turns. */
  | "guard without a turn"
  /** Cancelling an executing run takes its holder away at once. */
  | "cancel clears the holder"
  /** A transition that frees a key looks for the next sibling without the key's lock. */
  | "un-hold without the key's lock"
  /** A transition that frees a key leaves its siblings blocked. */
  | "no un-hold"
  /** A claim checks that nobody holds the key, but not that no earlier sibling is due. */
  | "skip locked decides the order in a key"
  /** A claim of a keyed run does without the key's lock. */
  | "claim without the key's lock"
  /** A worker is judged without its row's lock. */
  | "reap ignores a beat in flight"
  /** Only holders that have a worker row are reaped. */
  | "reap forgets holders without a row"
  /** A progressing outcome consumes all that matches, not what the step was shown. */
  | "consume what matches"
  /** A renewed await wakes on signals that its step has already seen. */
  | "a shown signal wakes again"
  /** A due await counts as timed out by its status in the unlocked page. */
  | "timeout decided by the page"
  /** A claim shows what matches by now, whatever the wait was resolved with by the claim before it. */
  | "every claim loads the inbox anew"
  /** The answer to a signal does not wait for the disk. */
  | "signal commits asynchronously";
