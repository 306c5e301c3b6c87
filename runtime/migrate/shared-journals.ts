import { runtimeAccount } from "../access/account.ts";
import { WatchfireError } from "../base/errors.ts";
import type { StoreKind } from "../journal/checkpoint.ts";
import type { SharedJournal } from "../journal/journal.ts";
import { SecretsJournal, type SecretsJournalOptions } from "../journal/secrets/journal.ts";
import type { Elector } from "../lease/elector.ts";
import { type NatsStoreOptions, openNats } from "./open-nats.ts";

type SharedOptions = Pick<SecretsJournalOptions, "transport"> & NatsStoreOptions;

/** Places that every replica reaches, as the Lease and `--store` name them. */
export type SharedPlace = Exclude<StoreKind, "sqlite">;

/** How the journal of each is opened, under the fence that is held. */
export const sharedJournals = {
  kubernetes: async ({ account = runtimeAccount, ...options }, { fence }) => {
    if (!fence) throw new WatchfireError("WF_LEASE_LOST", { what: "it was lost before the store was open" });
    return SecretsJournal.open({ ...options, account, fence });
  },
  nats: openNats,
} satisfies Record<SharedPlace, (options: SharedOptions, elector: Elector) => Promise<SharedJournal>>;

export const isShared = (place: string): place is SharedPlace => Object.hasOwn(sharedJournals, place);
