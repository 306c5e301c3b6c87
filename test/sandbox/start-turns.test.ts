import { describe, expect, it } from "vitest";
import type { Launch, LinkListener } from "../../runtime/sandbox/host/link.ts";
import { inTurns } from "../../runtime/sandbox/host/start-turns.ts";

/** Starts nothing, and records what each started link was asked. */
function processes() {
  const started: { readonly listener: LinkListener; readonly asked: string[] }[] = [];
  const launch: Launch = (listener) => {
    const asked: string[] = [];
    started.push({ listener, asked });
    return {
      pid: started.length,
      peakMemory: 0,
      write: (bytes, taken) => {
        asked.push(bytes.toString());
        taken?.();
      },
      pause: () => asked.push("pause"),
      resume: () => asked.push("resume"),
      capMemory: (bytes) => asked.push(`cap ${bytes}`),
      kill: () => asked.push("kill"),
    };
  };
  return { started, launch };
}

const listener = () => {
  const heard: string[] = [];
  const to: LinkListener = {
    opened: () => heard.push("opened"),
    data: (chunk) => heard.push(chunk.toString()),
    ended: (reason, detail) => heard.push(`${reason}: ${detail}`),
  };
  return { heard, to };
};

const word = (text: string) => Buffer.from(text);

describe("starts in turns", () => {
  it("no more executors start at once than there are cores, and each that speaks or ends lets another start", () => {
    const { started, launch } = processes();
    const turns = inTurns(launch, () => 2);
    for (let count = 0; count < 5; count++) turns(listener().to);
    expect(started).toHaveLength(2);
    started[0]?.listener.data(word("hello"));
    started[0]?.listener.data(word("again"));
    expect(started).toHaveLength(3);
    started[1]?.listener.ended("exited", "status 1");
    expect(started).toHaveLength(4);
    started[0]?.listener.ended("exited", "status 0");
    expect(started).toHaveLength(4);
    started[3]?.listener.data(word("hello"));
    expect(started).toHaveLength(5);
  });

  it("what was asked of an executor before its start is done at its start, in order", () => {
    const { started, launch } = processes();
    const turns = inTurns(launch, () => 1);
    turns(listener().to);
    const { heard, to } = listener();
    const link = turns(to);
    link.write(word("one"));
    link.capMemory(7);
    link.write(word("two"));
    expect([link.pid, link.peakMemory]).toEqual([undefined, 0]);
    started[0]?.listener.data(word("hello"));
    expect(started[1]?.asked).toEqual(["cap 7", "one", "two"]);
    link.write(word("three"));
    started[1]?.listener.data(word("hello"));
    expect(started[1]?.asked.at(-1)).toBe("three");
    expect(heard).toEqual(["hello"]);
  });

  it("one that is killed before its turn never starts, ends once, and keeps nobody waiting for its writes", async () => {
    const { started, launch } = processes();
    const turns = inTurns(launch, () => 1);
    turns(listener().to);
    const { heard, to } = listener();
    const link = turns(to);
    let taken = 0;
    link.write(word("one"), () => taken++);
    link.kill();
    link.kill();
    expect(heard).toEqual([]);
    await Promise.resolve();
    await new Promise((resolve) => process.nextTick(resolve));
    expect([heard, taken]).toEqual([["exited: it was not started"], 1]);
    started[0]?.listener.data(word("hello"));
    expect(started).toHaveLength(1);
  });
});
