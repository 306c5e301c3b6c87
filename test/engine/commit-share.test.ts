import { expect, test } from "vitest";
import { CommitShare, mostRows } from "../../runtime/engine/commit/commit-share.ts";

function opened() {
  const waiting: (() => void)[] = [];
  const commits = { number: 1, written: (done: () => void) => waiting.push(done) };
  let calls = 0;
  const share = new CommitShare(commits, () => calls++);
  const next = () => {
    commits.number++;
    for (const done of waiting.splice(0)) done();
  };
  return { share, next, waiting, calls: () => calls };
}

test("a function may add its share to a commit, and goes on once that is written", () => {
  const { share, next, calls } = opened();
  share.add(mostRows - 1);
  expect(share.isSpent).toBe(false);
  share.add();
  expect(share.isSpent).toBe(true);
  next();
  expect([share.isSpent, calls()]).toEqual([false, 1]);
});

test("one commit is asked for, however often somebody asks", () => {
  const { share, waiting } = opened();
  share.add(mostRows);
  for (let times = 0; times < 3; times++) share.isSpent;
  expect(waiting).toHaveLength(1);
});

test("what adds rows waits for the next commit once the share is used up, and each commit has no more than a share of it", () => {
  const { share, next, calls } = opened();
  const done: number[] = [];
  for (let each = 0; each < 3 * mostRows; each++)
    share.soon(() => {
      share.add();
      done.push(each);
    });
  expect(done).toHaveLength(mostRows);
  next();
  expect([done.length, calls()]).toEqual([2 * mostRows, 1]);
  next();
  expect(done).toEqual(Array.from({ length: 3 * mostRows }, (_, each) => each));
});

test("nothing waits for a commit once the function stops: there may be none any more", () => {
  const { share } = opened();
  let done = 0;
  share.add(mostRows);
  share.soon(() => done++);
  expect(done).toBe(0);
  share.close();
  share.soon(() => done++);
  expect(done).toBe(2);
});

test("what a function added to one commit counts for no other", () => {
  const { share, next } = opened();
  share.add(mostRows);
  next();
  share.add(mostRows - 1);
  expect(share.isSpent).toBe(false);
});
