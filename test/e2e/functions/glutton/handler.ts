import { defineHandler } from "@watchfire/sdk";

/** 10 MiB at a time, each page of it written, until something gives. */
export default defineHandler(async () => {
  const eaten: Uint8Array[] = [];
  for (;;) eaten.push(new Uint8Array(10 * 1024 * 1024).fill(1));
});
