import { describe, expect, it } from "vitest";
import {
  type ClosableFunction,
  closeIdleIsolates,
  isolatesAlwaysKept,
} from "../../runtime/sandbox/executor/idle-isolates.ts";

const idleMs = 300_000;
const now = 1_000_000;

describe("functions with nothing to do", () => {
  it("keep their isolates for the whole time while there is room", () => {
    const functions = crowd(isolatesAlwaysKept, () => ({ idleFor: idleMs - 1 }));
    expect(letGo(functions)).toEqual([]);
    expect(letGo([...functions.slice(1), fake({ idleFor: idleMs })])).toEqual([isolatesAlwaysKept - 1]);
  });

  it("that never had an event give way at once in a crowd, those idle longest first, until there is room", () => {
    const functions = crowd(isolatesAlwaysKept + 3, (index) => ({ isUsed: false, idleFor: 2_000 + index }));
    expect(letGo(functions)).toEqual([2, 1, 0].map((index) => isolatesAlwaysKept + index));
  });

  it("that never had an event keep their isolates for ten seconds while there is room", () => {
    const functions = crowd(3, (index) => ({ isUsed: index === 2, idleFor: 9_999 + index }));
    expect(letGo(functions)).toEqual([1]);
  });

  it("that had events keep their isolates for a minute in a crowd", () => {
    expect(letGo(crowd(500, () => ({ idleFor: 59_000 })))).toEqual([]);
    expect(letGo(crowd(500, () => ({ idleFor: 61_000 })))).toHaveLength(500 - isolatesAlwaysKept);
  });

  it("that were loaded this moment keep their isolates, whatever the crowd", () => {
    expect(letGo(crowd(500, () => ({ isUsed: false, idleFor: 500 })))).toEqual([]);
  });

  it("never wait longer in a crowd than alone", () => {
    const functions = crowd(500, () => ({ idleFor: 100 }));
    expect(letGo(functions, 50)).toHaveLength(500);
  });

  it("are not those that run or wait for an event, nor those that have no isolate", () => {
    const functions = crowd(500, (index) => (index % 2 ? { idleFor: undefined } : { isolates: 0, idleFor: idleMs }));
    expect(letGo(functions)).toEqual([]);
  });
});

interface Fake {
  readonly isolates?: number;
  readonly isUsed?: boolean;
  readonly idleFor: number | undefined;
}

function fake({ isolates = 1, isUsed = true, idleFor }: Fake): Omit<ClosableFunction, "letGo"> {
  return { isolates, isUsed, idleSince: idleFor === undefined ? undefined : now - idleFor };
}

const crowd = (size: number, of: (index: number) => Fake) =>
  Array.from({ length: size }, (_, index) => fake(of(index)));

/** Returns the indexes of the released functions, in the order of their release. */
function letGo(functions: readonly Omit<ClosableFunction, "letGo">[], forMs = idleMs): readonly number[] {
  const gone: number[] = [];
  const warm = functions.map((one, index) => ({ ...one, letGo: () => void gone.push(index) }));
  closeIdleIsolates(warm, now, forMs);
  return gone;
}
