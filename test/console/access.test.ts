import { expect, test } from "vitest";
import { ConsoleAccess, codeMs, loginLink } from "../../runtime/console/access.ts";
import { type ApiCaller, tokenCaller } from "../../runtime/control/access/caller.ts";

const epoch = Date.parse("2026-01-01T00:00:00Z");

/** An access whose time is set by hand. */
function accessAt() {
  const clock = { at: 0, monotonic: () => clock.at, now: () => epoch + clock.at };
  return { clock, access: new ConsoleAccess(clock) };
}

test("a code is good for one login", () => {
  const { access } = accessAt();
  const code = access.newCode(tokenCaller);
  expect(access.login(code)).toMatchObject({ number: 1 });
  expect(access.login(code)).toBeUndefined();
});

test("a code is too old after ten minutes", () => {
  const { access, clock } = accessAt();
  const code = access.newCode(tokenCaller);
  clock.at = codeMs + 1;
  expect(access.login(code)).toBeUndefined();
});

test("a session needs both halves, and of the same session", () => {
  const { access } = accessAt();
  const [one, other] = [access.login(access.newCode(tokenCaller)), access.login(access.newCode(tokenCaller))];
  expect(access.sessionOf(one?.cookie ?? "", one?.proof ?? "")).toMatchObject({ number: 1, caller: tokenCaller });
  expect(access.sessionOf(one?.cookie ?? "", other?.proof ?? "")).toBeUndefined();
  expect(access.sessionOf(one?.cookie ?? "", "")).toBeUndefined();
  expect(access.sessionOf("", one?.proof ?? "")).toBeUndefined();
});

test("a session ends after twelve hours, or when it logs out", () => {
  const { access, clock } = accessAt();
  const [one, other] = [access.login(access.newCode(tokenCaller)), access.login(access.newCode(tokenCaller))];
  access.logout(one?.cookie ?? "");
  expect(access.sessionOf(one?.cookie ?? "", one?.proof ?? "")).toBeUndefined();
  clock.at = 12 * 3_600_000 + 1;
  expect(access.sessionOf(other?.cookie ?? "", other?.proof ?? "")).toBeUndefined();
});

const account = (until: number | undefined, name = "ada"): ApiCaller => ({
  kind: "account",
  account: { name, uid: "", groups: [], extra: {} },
  until,
});

test.each([
  ["ends with the token", epoch + 60_000, 60_000],
  ["ends after an hour if the token does not say when it ends", undefined, 3_600_000],
  ["ends after twelve hours, however long the token lives", epoch + 1e10, 12 * 3_600_000],
])("an account's session %s", (_, until, lifeMs) => {
  const { access, clock } = accessAt();
  const { cookie, proof } = access.begin(account(until));
  clock.at = lifeMs - 1;
  expect(access.sessionOf(cookie, proof)?.caller).toMatchObject({ account: { name: "ada" } });
  clock.at = lifeMs + 1;
  expect(access.sessionOf(cookie, proof)).toBeUndefined();
});

test("the oldest of too many codes and sessions gives way", () => {
  const { access } = accessAt();
  const codes = Array.from({ length: 17 }, () => access.newCode(tokenCaller));
  expect(access.login(codes[0] ?? "")).toBeUndefined();
  const first = access.login(codes[1] ?? "");
  for (let count = 0; count < 32; count++) access.login(access.newCode(tokenCaller));
  expect(access.sessionOf(first?.cookie ?? "", first?.proof ?? "")).toBeUndefined();
});

test("a caller with many codes and sessions displaces their own, and nobody else's", () => {
  const { access } = accessAt();
  const code = access.newCode(account(undefined, "grace"));
  const { cookie, proof } = access.begin(account(undefined, "grace"));
  for (let count = 0; count < 50; count++) {
    access.newCode(account(undefined));
    access.begin(account(undefined));
  }
  expect(access.sessionOf(cookie, proof)?.caller).toMatchObject({ account: { name: "grace" } });
  expect(access.login(code)).toBeDefined();
});

test("the code of a link is its fragment, and a wildcard address becomes loopback", () => {
  expect(loginLink("http://0.0.0.0:9464", "abc")).toBe("http://127.0.0.1:9464/login#abc");
  expect(loginLink("http://127.0.0.1:9464/", "abc")).toBe("http://127.0.0.1:9464/login#abc");
});
