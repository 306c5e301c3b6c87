/** What a key of the terminal does. */
export interface Key {
  /** One character. */
  readonly key: string;
  /** In a few words. */
  readonly does: string;
  act(): void | Promise<void>;
}

/** The part of a terminal's input that keys need. */
interface KeyInput {
  setRawMode(mode: boolean): unknown;
  on(event: "data", listener: (bytes: Buffer) => void): unknown;
  off(event: "data", listener: (bytes: Buffer) => void): unknown;
  resume(): unknown;
  pause(): unknown;
}

/** Ctrl-C: in raw mode it is a character, and nobody else's signal. */
const interrupt = "\u0003";

interface KeysOptions {
  readonly input: KeyInput;
  readonly keys: readonly Key[];
  /** Asks the process to end: Ctrl-C. */
  readonly quit: () => void;
  /** Hears why an action failed, and the list of keys where another is pressed. */
  readonly say: (text: string) => void;
}

/** Acts on single keys until the returned function is called. One action at a time; keys pressed meanwhile are dropped. */
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
    // An arrow or a function key is a sequence, and none of ours.
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

/** The keys on one line: `r replay the last event, q quit`. */
export const keyList = (keys: readonly Key[]): string => keys.map(({ key, does }) => `${key} ${does}`).join(", ");
