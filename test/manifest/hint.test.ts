import { expect, test } from "vitest";
import { valueHint } from "../../runtime/manifest/hint.ts";

const memory = ["spec", "resources", "memory"];
const host = ["spec", "egress", 0, "host"];

test.each([
  [memory, "1Ki", "write a size within these bounds, such as 64Mi"],
  [memory, "8Gi", "write a size within these bounds, such as 64Mi"],
  [memory, "64mb", "write 64Mi"],
  [memory, "512kb", "write 512Ki"],
  [host, "*", "name a domain with a dot after the star, such as *.example.com"],
  [host, "*.com", "name a domain with a dot after the star, such as *.example.com"],
  [host, "2130706433", "write an address with its dots, such as 192.0.2.1, or a host by its name"],
  [host, "127.1", "write the address in full: 127.0.0.1"],
  [host, "010.0.0.1", "write the four numbers of an address, 0 to 255 and with no zero before them, such as 192.0.2.1"],
  [
    host,
    "10.0.0.256",
    "write the four numbers of an address, 0 to 255 and with no zero before them, such as 192.0.2.1",
  ],
  [host, "127.1:80", "write the address in full: 127.0.0.1"],
  [host, "127.0.0.1:80", "write only the name, such as 127.0.0.1, and its ports under `ports`"],
  [host, "http://[::1]:80", "write only the name, such as ::1, and its ports under `ports`"],
  [host, "http://localhost:8099/x", "write 127.0.0.1 or ::1, and fetch by that address"],
  [host, "localhost", "write 127.0.0.1 or ::1, and fetch by that address"],
  [host, "https://a.example/x", "write only the name, such as a.example, and its ports under `ports`"],
])("a hint never says to write what stands there: %j: %s", (path, actual, hint) => {
  expect(valueHint(path, actual)).toBe(hint);
});
