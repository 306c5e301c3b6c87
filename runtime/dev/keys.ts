/** Action of a key of the terminal. */
export interface Key {
  /** One character. */
  readonly key: string;
  /** Description of a few words. */
  readonly does: string;
  act(): void | Promise<void>;
}

/** The part of a terminal's input that is used. */
interface KeyInput {
  setRawMode(mode: boolean): unknown;
  on(event: "data", listener: (bytes: Buffer) => void): unknown;
  off(event: "data", listener: (bytes: Buffer) => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

/** Ctrl-C: in raw mode it is a character instead of a signal. */
const interrupt = "\u0003";

interface KeysOptions {
  readonly input: KeyInput;
  readonly keys: readonly Key[];
  /** Asks the process to end; called for Ctrl-C. */
  readonly quit: () => void;
  /** Called with the reason if an action failed, and with the list of keys if another key is pressed. */
  readonly say: (text: string) => void;
}

/**
 * Runs actions for single keys until the returned function is called. One action runs at a time; keys pressed meanwhile are
 * ignored.
 */
export function listenToKeys({ input, keys, quit, say }: KeysOptions): () => void {
  let busy = false;
  const press = async (pressed: string) => {
    if (pressed === interrupt) return quit();
    const found = keys.find(({ key }) => key === pressed.toLowerCase());
    if (!found) return /\s/.test(pressed) ? undefined : say(keyList(keys));
    if (busy) return;
    busy = true;
    try {
      await found.act();
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
    busy = false;
  };
  const hear = (bytes: Buffer) => {
    // An arrow or a function key is an escape sequence, which is not handled here.
    if (bytes[0] === 0x1b) return;
    for (const each of bytes.toString()) void press(each);
  };
  input.setRawMode(true);
  input.on("data", hear);
  input.resume();
  return () => {
    input.off("data", hear);
    input.setRawMode(false);
    input.pause();
  };
}

/** Formats the keys on one line: `r replay the last event, q quit`. */
export const keyList = (keys: readonly Key[]): string => keys.map(({ key, does }) => `${key} ${does}`).join(", ");
