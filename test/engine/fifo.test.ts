import fc from "fast-check";
import { expect, test } from "vitest";
import { Fifo, type FifoItem } from "../../runtime/engine/work/lane.ts";

class One implements FifoItem<One> {
  list: Fifo<One> | undefined;
  previous: One | undefined;
  next: One | undefined;
}

const membersOf = (line: Fifo<One>): One[] => {
  const members: One[] = [];
  for (let one = line.first; one; one = one.next) members.push(one);
  return members;
};

test("a line has those who came and have not left, in the order in which they came", () => {
  const steps = fc.array(fc.tuple(fc.nat(7), fc.boolean()), { maxLength: 60 });
  fc.assert(
    fc.property(steps, (taken) => {
      const ones = Array.from({ length: 8 }, () => new One());
      const lines = [new Fifo<One>(), new Fifo<One>()] as const;
      const expected = new Map<Fifo<One>, One[]>(lines.map((line) => [line, []]));
      for (const [index, second] of taken) {
        const one = ones[index] as One;
        const { list: left } = one;
        if (left) {
          left.remove(one);
          expected.set(left, expected.get(left)?.filter((each) => each !== one) ?? []);
          expect([one.list, one.previous, one.next]).toEqual([undefined, undefined, undefined]);
        } else {
          const joined = lines[second ? 1 : 0];
          joined.push(one);
          expected.get(joined)?.push(one);
        }
        for (const line of lines) {
          const members = membersOf(line);
          const same = members.length === expected.get(line)?.length;
          expect(same && members.every((each, at) => each === expected.get(line)?.[at])).toBe(true);
          expect(members.every((each, at) => each.list === line && each.previous === members[at - 1])).toBe(true);
        }
      }
    }),
  );
});
