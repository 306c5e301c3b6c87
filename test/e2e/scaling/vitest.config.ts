import { defineConfig } from "vitest/config";

// Takes the whole machine for minutes: a command of its own.
export default defineConfig({
  test: {
    include: ["test/e2e/scaling/*.scenario.ts"],
    fileParallelism: false,
    testTimeout: 600_000,
    hookTimeout: 400_000,
    reporters: ["verbose"],
  },
});
