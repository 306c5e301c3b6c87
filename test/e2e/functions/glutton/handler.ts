import { defineHandler } from "@watchfire/sdk";

/** Allocates 10 MiB at a time and writes each page, until a limit is reached. */
export default defineHandler(async () => {
  const eaten: Uint8Array[] = [];
  for (;;) eaten.push(new Uint8Array(10 * 1024 * 1024).fill(1));
});
