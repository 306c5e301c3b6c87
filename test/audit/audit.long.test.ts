import { expect, test } from "vitest";
import { audit } from "./audit.ts";

const noFault = { missed: [], unflagged: [], disordered: [], invented: [], unwanted: [] };

test("nothing is missed and no duplicate goes unflagged when the runtime is killed, its manifest edited and history compacted", async () => {
  const lines: string[] = [];
  const say = (line: string) => lines.push(line);
  const { whole, compacted } = await audit({ objects: 150, operations: 450, kills: 2, seed: 20261121, say });
  expect(whole, lines.join("\n")).toMatchObject(noFault);
  expect(compacted, lines.join("\n")).toMatchObject(noFault);
  expect(compacted.synthetic, "no gap was bridged").toBeGreaterThan(0);
  expect(compacted.reselected, "no edit selected anything").toBeGreaterThan(0);
}, 240_000);
