import { defineConfig } from "vitest/config";

// A separate command, because it uses the whole machine for minutes.
export default defineConfig({
  test: {
    include: ["test/e2e/scaling/*.scenario.ts"],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 400_000,
    reporters: ["verbose"],
  },
});
