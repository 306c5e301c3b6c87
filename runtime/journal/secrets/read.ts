import { WatchfireError } from "../../base/errors.ts";
import type { KubeTransport } from "../../kube/transport.ts";
import type { MemoryDisk } from "../memory/journal.ts";
import { type Head, readDisk, readHead } from "./head.ts";
import { checkpointSecrets } from "./names.ts";
import { Secrets } from "./secrets.ts";

/** Maximum number of attempts to read a snapshot that a runtime replaces meanwhile. It does so every few minutes at most. */
const tries = 5;

interface SecretsReadOptions {
  readonly transport: KubeTransport;
  readonly namespace: string;
  /** Prefix of the Secrets' names. */
  readonly account: string;
}

/** The contents of the Secrets at one moment. */
interface SecretsContents {
  readonly disk: MemoryDisk;
  /** The store that the checkpoints were moved to, if they were. */
  readonly movedTo: string | undefined;
}

/**
 * Reads checkpoints in Secrets without changing them, while a runtime works with them or not. `undefined` if nothing was ever
 * written.
 * @throws WatchfireError of the checkpoint section; what the transport throws
 */
export async function readSecrets(options: SecretsReadOptions): Promise<SecretsContents | undefined> {
  const secrets = new Secrets(options.transport, options.namespace);
  const names = checkpointSecrets(options.account);
  const name = names[0] ?? "";
  for (let tried = 1; ; tried++) {
    const head = readHead(await secrets.read(name), name);
    if (!head) return undefined;
    const slot = async (index: number) => (await secrets.read(names[index] ?? "")).data.get("data") ?? Buffer.alloc(0);
    try {
      return { disk: await readDisk(head, name, slot), movedTo: movedIn(head) };
    } catch (error) {
      // The head may name another snapshot by now. If it names the same, that one is damaged.
      const now = readHead(await secrets.read(name), name);
      const isSame = now?.snapshot?.sha256 === head.snapshot?.sha256;
      if (isSame || tried === tries || !(error instanceof WatchfireError)) throw error;
    }
  }
}

const movedIn = ({ end }: Head): string | undefined =>
  end.startsWith("moved:") ? end.slice("moved:".length) : undefined;
