import { defineConfig } from "vitest/config";
import { realClusterConfigured } from "./test/tools/assets.ts";

// Two workers also on two cores, where vitest would take one: most files wait for sockets and child processes.
const common = { testTimeout: 20_000, hookTimeout: 60_000, maxWorkers: 2, sequence: { hooks: "stack" } } as const;

// One suite, a project per cluster. Its tests mostly wait for the server, so more of them run at once than there are
// cores; the groups run one after the other, so that no project's load is another's latency.
const clusterProject = (name: string, groupOrder: number) => ({
  test: {
    ...common,
    name,
    include: ["test/cluster/**/*.test.ts", "test/gap/**/*.test.ts"],
    globalSetup: ["test/cluster/shared-cluster.setup.ts"],
    maxWorkers: 3,
    testTimeout: 60_000,
    hookTimeout: 120_000,
    sequence: { ...common.sequence, groupOrder },
  },
});

export default defineConfig({
  test: {
    projects: [
      { test: { ...common, name: "layers", include: ["test/layers.test.ts"] } },
      {
        test: {
          ...common,
          name: "unit",
          include: ["test/**/*.test.ts", "functions/**/*.test.ts"],
          exclude: ["**/node_modules/**", "test/cluster/**", "test/gap/**", "test/layers.test.ts"],
        },
      },
      clusterProject("cluster-embedded", 1),
      ...(realClusterConfigured() ? [clusterProject("cluster-real", 2)] : []),
    ],
  },
});
