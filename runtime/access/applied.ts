import { createHash } from "node:crypto";

/** Number of applies that are remembered, of all functions together. Beyond it the oldest are forgotten, so that an equal apply is sent. */
const mostApplies = 10_000;

/** An object as the runtime knows it, of one function's `reads`. */
export interface KeptObject {
  /** Identifies the object's state: equal only if nothing has written the object in between. */
  readonly state: string;
  /** Its JSON text. */
  readonly body: Buffer;
}

/** A function's last apply of an object. */
interface Apply {
  readonly hash: string;
  /** The object's state after it; `undefined` until the answer. */
  state: string | undefined;
}

/**
 * Remembers each function's last apply of an object, and the state in which it left the object. The same apply of an object that
 * is still in this state would change nothing. Any other write of the object by the function makes it forget: the state that the
 * runtime knows may be older than that write.
 */
export class AppliedObjects {
  private readonly applies = new Map<string, Apply>();

  /** Whether this body, applied again to the object that is known, would change nothing. */
  isApplied(functionName: string, path: string, body: string, kept: KeptObject): boolean {
    const last = this.applies.get(keyOf(functionName, path));
    return last?.state !== undefined && last.state === kept.state && last.hash === hashOf(body);
  }

  /**
   * Begins an apply.
   * @returns a function that records the object's state after the apply, if it is known; ignored if the function has
   *   written the object since
   */
  begin(functionName: string, path: string, body: string): (state: string | undefined) => void {
    const key = keyOf(functionName, path);
    const apply: Apply = { hash: hashOf(body), state: undefined };
    this.applies.delete(key);
    this.applies.set(key, apply);
    const [oldest] = this.applies.keys();
    if (this.applies.size > mostApplies && oldest !== undefined) this.applies.delete(oldest);
    return (state) => {
      apply.state = state;
    };
  }

  /** Forgets an object that the function writes in another way, before the write and after it. */
  forget(functionName: string, path: string): void {
    if (this.applies.size > 0) this.applies.delete(keyOf(functionName, path));
  }
}

/** A hash, because a name may have a thousand characters. */
const keyOf = (functionName: string, path: string): string => hashOf(`${functionName} ${path}`);

const hashOf = (body: string): string => createHash("sha256").update(body).digest("base64");
