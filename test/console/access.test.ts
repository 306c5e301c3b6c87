import { expect, test } from "vitest";
import { ConsoleAccess, codeMs, loginLink } from "../../runtime/console/access.ts";

/** An access whose time is set by hand. */
function accessAt() {
  const clock = { now: 0, monotonic: () => clock.now };
  return { clock, access: new ConsoleAccess(clock) };
}

test("a code is good for one login", () => {
  const { access } = accessAt();
  const code = access.newCode();
  expect(access.login(code)).toMatchObject({ number: 1 });
  expect(access.login(code)).toBeUndefined();
});

test("a code is too old after ten minutes", () => {
  const { access, clock } = accessAt();
  const code = access.newCode();
  clock.now = codeMs + 1;
  expect(access.login(code)).toBeUndefined();
});

test("a session needs both halves, and of the same session", () => {
  const { access } = accessAt();
  const [one, other] = [access.login(access.newCode()), access.login(access.newCode())];
  expect(access.sessionOf(one?.cookie ?? "", one?.proof ?? "")).toBe(1);
  expect(access.sessionOf(one?.cookie ?? "", other?.proof ?? "")).toBeUndefined();
  expect(access.sessionOf(one?.cookie ?? "", "")).toBeUndefined();
  expect(access.sessionOf("", one?.proof ?? "")).toBeUndefined();
});

test("a session ends after twelve hours, or when it logs out", () => {
  const { access, clock } = accessAt();
  const [one, other] = [access.login(access.newCode()), access.login(access.newCode())];
  access.logout(one?.cookie ?? "");
  expect(access.sessionOf(one?.cookie ?? "", one?.proof ?? "")).toBeUndefined();
  clock.now = 12 * 3_600_000 + 1;
  expect(access.sessionOf(other?.cookie ?? "", other?.proof ?? "")).toBeUndefined();
});

test("the oldest of too many codes and sessions gives way", () => {
  const { access } = accessAt();
  const codes = Array.from({ length: 17 }, () => access.newCode());
  expect(access.login(codes[0] ?? "")).toBeUndefined();
  const first = access.login(codes[1] ?? "");
  for (let count = 0; count < 32; count++) access.login(access.newCode());
  expect(access.sessionOf(first?.cookie ?? "", first?.proof ?? "")).toBeUndefined();
});

test("the code of a link is its fragment, and a wildcard address becomes loopback", () => {
  expect(loginLink("http://0.0.0.0:9464", "abc")).toBe("http://127.0.0.1:9464/login#abc");
  expect(loginLink("http://127.0.0.1:9464/", "abc")).toBe("http://127.0.0.1:9464/login#abc");
});
