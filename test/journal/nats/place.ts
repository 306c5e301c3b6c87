import { onTestFinished } from "vitest";
import { systemClock } from "../../../runtime/base/clock.ts";
import { Checkpoint } from "../../../runtime/journal/checkpoint.ts";
import { Nats } from "../../../runtime/journal/nats/connection.ts";
import { JetstreamJournal, type JetstreamJournalOptions } from "../../../runtime/journal/nats/journal.ts";
import type { Witness } from "../../../runtime/journal/nats/slot.ts";
import { startNats } from "../../tools/nats.ts";
import type { NatsServer } from "../../tools/nats-server.ts";

/** A slot on a separate server, which a test opens and kills. */
export class Place {
  readonly server: NatsServer;
  readonly nats: Nats;
  readonly lost: string[] = [];
  readonly said: string[] = [];
  /** The mark that the witness last received. */
  mark = "";
  readonly witness: Witness = {
    read: () => this.mark,
    write: async (mark) => {
      this.mark = mark;
    },
  };

  constructor(server: NatsServer, nats: Nats) {
    this.server = server;
    this.nats = nats;
  }

  /** @param afterwards whether the test closes it at its end */
  static async make(server?: NatsServer, { afterwards = true } = {}): Promise<Place> {
    const running = server ?? (await startNats());
    const log = { warn: () => {}, info: () => {} };
    const nats = await Nats.connect({ servers: [running.url], name: `ns-${crypto.randomUUID()}`, log });
    if (afterwards) onTestFinished(() => nats.close());
    return new Place(running, nats);
  }

  open(over: Partial<JetstreamJournalOptions> = {}): Promise<Checkpoint<JetstreamJournal>> {
    const note = (fields: object) => void this.said.push(JSON.stringify(fields));
    return JetstreamJournal.open({
      nats: this.nats,
      slot: "0",
      clock: systemClock,
      witness: this.witness,
      log: { warn: note, error: note },
      onLost: ({ code }) => void this.lost.push(code),
      ...over,
    }).then((journal) => new Checkpoint(journal));
  }
}
