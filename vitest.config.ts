import { configDefaults, defineConfig } from "vitest/config";
import { realClusterConfigured } from "./test/tools/assets.ts";

// Three workers on two cores: most files wait for sockets and child processes.
const common = { testTimeout: 20_000, hookTimeout: 60_000, maxWorkers: 3, sequence: { hooks: "stack" } } as const;

/** Rooms whose files run whole processes, or share a cluster within the file: each file in a process of its own. */
const processes = ["audit", "cli", "deployed", "function-status", "functions", "hostile", "sandbox", "scenarios"];
const processFiles = processes.map((room) => `test/${room}/**/*.test.ts`);
const clusterFiles = ["test/cluster/**/*.test.ts", "test/gap/**/*.test.ts"];

// One suite, a project per cluster, after all others, so that no project's load is another's latency.
const clusterProject = (name: string) => ({
  test: {
    ...common,
    name,
    include: clusterFiles,
    globalSetup: ["test/cluster/shared-cluster.setup.ts"],
    testTimeout: 60_000,
    hookTimeout: 120_000,
    sequence: { ...common.sequence, groupOrder: 1 },
  },
});

export default defineConfig({
  test: {
    projects: [
      { test: { ...common, name: "layers", include: ["test/layers.test.ts"] } },
      // In the order of their names: the long files first, so that short ones fill up the end.
      { test: { ...common, name: "processes", include: processFiles } },
      {
        test: {
          ...common,
          name: "unit",
          include: ["test/**/*.test.ts", "functions/**/*.test.ts"],
          exclude: [...configDefaults.exclude, ...processFiles, ...clusterFiles, "test/layers.test.ts"],
          // What they are about keeps nothing between two of them: the files of a worker load it once.
          isolate: false,
        },
      },
      clusterProject("cluster-embedded"),
      ...(realClusterConfigured() ? [clusterProject("cluster-real")] : []),
    ],
  },
});
