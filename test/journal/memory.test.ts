import { describe } from "vitest";
import { MemoryDisk } from "../../runtime/journal/memory/journal.ts";
import { MemoryStore } from "./memory-store.ts";
import { storeContract } from "./store-contract.ts";

describe("the store in memory", () => {
  storeContract(async () => {
    const disk = new MemoryDisk();
    return { open: () => new MemoryStore(disk), kill: () => {} };
  });
});
