import { defineConfig } from "vitest/config";

// One cluster with a node of two cores: one scenario at a time, in the order of the files' names.
export default defineConfig({
  test: {
    include: ["test/e2e/**/*.scenario.ts"],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 180_000,
    bail: 0,
    reporters: ["verbose"],
  },
});
