import { expect, test } from "vitest";
import { type Key, listenToKeys } from "../../runtime/dev/keys.ts";
import { settle } from "../virtual-clock.ts";

function terminal(acts: Readonly<Record<string, Key["act"]>>) {
  let hear: ((bytes: Buffer) => void) | undefined;
  const modes: boolean[] = [];
  const said: string[] = [];
  let quits = 0;
  const leave = listenToKeys({
    input: {
      setRawMode: (mode) => modes.push(mode),
      on: (_, listener) => {
        hear = listener;
      },
      off: () => {
        hear = undefined;
      },
      resume: () => {},
      pause: () => {},
    },
    keys: Object.entries(acts).map(([key, act]) => ({ key, does: `does ${key}`, act })),
    quit: () => quits++,
    say: (text) => said.push(text),
  });
  const press = async (text: string) => {
    hear?.(Buffer.from(text));
    await settle();
  };
  return { press, leave, modes, said, quits: () => quits };
}

test("a key acts at once, in either case, and one that is none of them shows what there is", async () => {
  let acted = 0;
  const { press, said } = terminal({ r: () => void acted++ });
  await press("r");
  await press("R");
  await press("\r\n");
  await press("\u001b[A");
  expect([acted, said]).toEqual([2, []]);
  await press("x");
  expect(said).toEqual(["r does r"]);
});

test("one action runs at a time, and one that fails is told and keeps nothing from the next", async () => {
  const work = Promise.withResolvers<void>();
  let acted = 0;
  const act = () => {
    acted++;
    return work.promise;
  };
  const { press, said } = terminal({ r: act });
  await press("rrr");
  expect(acted).toBe(1);
  work.reject(new Error("no sample"));
  await press("");
  await press("r");
  expect([acted, said]).toEqual([2, ["no sample", "no sample"]]);
});

test("Ctrl-C quits also while an action runs, and the terminal is given back as it was", async () => {
  const { press, leave, modes, quits } = terminal({ r: () => new Promise(() => {}) });
  await press("r");
  await press("\u0003");
  expect(quits()).toBe(1);
  leave();
  await press("\u0003");
  expect([quits(), modes]).toEqual([1, [true, false]]);
});
