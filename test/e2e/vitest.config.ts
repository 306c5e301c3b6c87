import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";

class ByName extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => (a.moduleId < b.moduleId ? -1 : 1));
  }
}

// One cluster with a node of two cores, so the scenarios run one at a time, in the order of the files' names.
export default defineConfig({
  test: {
    include: ["test/e2e/*.scenario.ts"],
    fileParallelism: false,
    sequence: { sequencer: ByName },
    testTimeout: 180_000,
    hookTimeout: 180_000,
    reporters: ["verbose"],
  },
});
