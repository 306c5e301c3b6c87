import type { Clock, Random } from "../base/clock.ts";
import type { WatchfireError } from "../base/errors.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { Logger } from "../observe/log.ts";
import type { NatsPlace } from "./open-nats.ts";

/** How a runtime alone opens its store. */
export interface StoreOptions {
  /** The data folder. */
  readonly data: string;
  /** Where positions are to be kept. Default `sqlite`. */
  readonly store?: StoreKind;
  /** Which NATS keeps them, or kept them before. */
  readonly nats?: NatsPlace | undefined;
  readonly transport: KubeTransport;
  readonly namespace: string;
  readonly account?: string | undefined;
  /** The pod's name, where there is an election. */
  readonly pod?: string | undefined;
  /** Of this process, where there is an election. */
  readonly identity?: string | undefined;
  /** The cluster's uid, where it is known: positions on NATS of another are left as they are. */
  readonly cluster: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Told why it has to be waited for, where that is so, and of its end. */
  readonly waiting?: (why: string | undefined) => void;
  /** Called when another runtime has taken the store over. */
  readonly onLost: (error: WatchfireError) => void;
}
